#!lua flags=allow-oom
-- Keeps a lease.
--
-- KEYS[1]  the session
-- ARGV     the number of the lease; for how many microseconds from now on
-- Answers: whether it is still there.
local key = KEYS[1] .. ':lease'
if redis.call('HGET', key, 'fence') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('HSET', key, 'over', string.format('%.0f', now + ARGV[2]))
redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(ARGV[2] / 1000) + 86400000))
return 1
