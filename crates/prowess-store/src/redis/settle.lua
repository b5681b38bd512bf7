#!lua
-- What a crash may have left of a session: uses that are not counted yet.
--
-- KEYS[1]  the session
-- ARGV     a number or '': whoever was announced with it, or before, must announce again;
--          up to which number uses are counted
-- Answers: whether the session is there, and the uses that are not counted yet.
local outbox, floor = KEYS[1] .. ':outbox', KEYS[1] .. ':floor'
if ARGV[1] ~= '' then
    local last = redis.call('GET', floor)
    if not last or tonumber(last) < tonumber(ARGV[1]) then
        redis.call('SET', floor, ARGV[1], 'EX', 86400)
    end
end
local answer = {tostring(redis.call('EXISTS', KEYS[1] .. ':meta'))}
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', outbox, '(' .. ARGV[2], '+inf')) do
    answer[#answer + 1] = entry
end
return answer
