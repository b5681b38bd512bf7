#!lua flags=no-writes
-- The skills that were changed after a place of the log.
--
-- KEYS[1]  the registry
-- ARGV     the place
-- Answers: the log's end; then for each skill its id, its row and its active version.
local base = KEYS[1]
local answer = {tostring(redis.call('LLEN', base .. ':audit'))}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. ':changed', '(' .. ARGV[1], '+inf')) do
    answer[#answer + 1] = id
    answer[#answer + 1] = redis.call('HGET', base .. ':skills', id)
    answer[#answer + 1] = redis.call('HGET', base .. ':active', id)
end
return answer
