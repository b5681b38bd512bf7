#!lua flags=allow-oom
-- Gives a session back. The last number stays for a while, so that it is not given again.
--
-- KEYS[1]  the session
-- ARGV     the number of the lease
local key = KEYS[1] .. ':lease'
if redis.call('HGET', key, 'fence') ~= ARGV[1] then return 0 end
redis.call('HDEL', key, 'fence', 'holder', 'over')
redis.call('PEXPIRE', key, 86400000)
return 1
