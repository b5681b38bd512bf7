#!lua flags=allow-oom
-- Removes content that was put long ago.
--
-- KEYS[1]  the content
-- ARGV     so many seconds ago at least
-- Answers: whether it was there, or -1 if it is too young.
local put = redis.call('HGET', KEYS[1], 'put')
if not put then return 0 end
if redis.call('TIME')[1] - put < tonumber(ARGV[1]) then return -1 end
redis.call('UNLINK', KEYS[1])
return 1
