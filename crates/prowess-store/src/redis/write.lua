#!lua
-- Changes the registry, all of it or nothing, if what was read is still so.
--
-- KEYS[1]  the registry
-- ARGV     how many conditions, each a part of the registry, a field of it, and what is there ('' for
--          nothing); then commands, each as how many words, its name, a part of the registry and more.
--          `CHANGED part skill` writes down at which place of the log a skill was changed last;
--          `PUBLISH` has a channel instead of a part
-- Answers: whether it was so.
local base, at = KEYS[1], 2
for _ = 1, tonumber(ARGV[1]) do
    local there = redis.call('HGET', base .. ARGV[at], ARGV[at + 1])
    if (there or '') ~= ARGV[at + 2] then return 0 end
    at = at + 3
end
while at <= #ARGV do
    local words = tonumber(ARGV[at])
    local command = {}
    for i = 1, words do command[i] = ARGV[at + i] end
    at = at + 1 + words
    if command[1] == 'CHANGED' then
        redis.call('ZADD', base .. command[2], redis.call('LLEN', base .. ':audit'), command[3])
    else
        if command[1] ~= 'PUBLISH' then command[2] = base .. command[2] end
        redis.call(unpack(command))
    end
end
return 1
