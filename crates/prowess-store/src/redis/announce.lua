#!lua
-- Writes down that a session is about to be changed, so that what a crash leaves is found, and says
-- what is known of skills.
--
-- KEYS[1]  the registry
-- ARGV     the session; whether it may be new; pairs of a skill and what identifies its files
-- Answers: the number of the announcement, which is higher than all before; up to which number the
-- uses of the session are counted; for each pair the skill, and the newest version of these files.
local base, session = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local number = time[1] * 1000000 + time[2]
local last = redis.call('GET', base .. ':number')
if last and number <= tonumber(last) then number = tonumber(last) + 1 end
local text = string.format('%.0f', number)
redis.call('SET', base .. ':number', text)
-- Where nothing is pending, everything before is counted.
local pending = redis.call('HGET', base .. ':pending', session)
local counted = pending and string.match(pending, ' (%d+)$') or string.format('%.0f', number - 1)
redis.call('HSET', base .. ':pending', session, text .. ' ' .. counted)
if ARGV[2] == '1' then redis.call('ZADD', base .. ':sessions', 0, session) end
local answer = {text, counted}
for i = 3, #ARGV, 2 do
    answer[#answer + 1] = redis.call('HGET', base .. ':skills', ARGV[i])
    answer[#answer + 1] = redis.call('HGET', base .. ':trees:' .. ARGV[i], ARGV[i + 1])
end
return answer
