#!lua
-- Keeps content, and makes what is there young again.
--
-- KEYS[1]  the content
-- ARGV     its bytes, or nothing to do so only if it is there
-- Answers: whether it is there.
if #ARGV == 0 and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if #ARGV == 1 then redis.call('HSET', KEYS[1], 'bytes', ARGV[1]) end
redis.call('HSET', KEYS[1], 'put', redis.call('TIME')[1])
return 1
