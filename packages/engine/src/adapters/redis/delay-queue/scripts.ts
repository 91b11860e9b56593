/**
 * The scripts of a slot, run by their hashes. A slot has three keys, which share a hash tag:
 *
 * - `q`, a sorted set: id by the ms at which the entry can be taken: when it is due, or when its lease is over.
 * - `e`, a hash: the content of each entry by id.
 * - `h`, a hash: `token|due|redeliveries` by id, of entries that are in hand (with a token) or were handed over without an
 *   answer (without one).
 *
 * Times are of the server's clock, in whole ms. A delay counts from the next whole ms on, so that nothing is early.
 * All reads come before the first write, so that a key of the wrong type changes nothing.
 *
 * A Redis without memory refuses the first write of a script, if that may take more. Nothing more is scheduled then. What waits is
 * still handed over and ended, which gives memory back: these scripts begin with a write that takes none.
 */
import { scriptOf } from '../link.ts';

const TIME = `
local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now, from = math.floor(us / 1000), math.ceil(us / 1000)
local function whole(n) return string.format('%.0f', n) end
local function head()
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2])
end
`;

/** Ids have no NUL, so that there is no such field. */
const DRAIN = `
local function drain() redis.call('HDEL', KEYS[3], '\\0') end
`;

/** Consumers look by themselves every so often: only what is due before that has to be told. */
const TELL = `
local function tell(first, before, channel, slot, within)
  if first and (not before or first < before) and first - now < tonumber(within) then
    redis.call('PUBLISH', channel, slot .. ' ' .. whole(math.max(0, first - now)))
  end
end
`;

/** ARGV: channel, slot, ms, '1' to write the fence key too; then id, delay and content of each entry. */
const schedule = `${TIME}${TELL}
local ids = {}
for i = 5, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local known = redis.call('ZMSCORE', KEYS[1], unpack(ids))
local before = head()
local fields, scores, seen, first = {}, {}, {}, nil
for i, id in ipairs(ids) do
  if not known[i] and not seen[id] then
    seen[id] = true
    local due = from + tonumber(ARGV[3 + 3 * i])
    if not first or due < first then first = due end
    fields[#fields + 1] = id
    fields[#fields + 1] = ARGV[4 + 3 * i]
    scores[#scores + 1] = whole(due)
    scores[#scores + 1] = id
  end
end
if first then
  redis.call('HSET', KEYS[2], unpack(fields))
  redis.call('ZADD', KEYS[1], unpack(scores))
end
if ARGV[4] == '1' then redis.call('INCR', KEYS[3]) end
tell(first, before, ARGV[1], ARGV[2], ARGV[3])
return #fields / 2
`;

/** ARGV: limit, lease, token. Answers ms until there is more (-1: nothing), entries without content, then the entries. */
const claim = `${TIME}${DRAIN}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local answer, gone = { -1, 0 }, {}
if #found > 0 then
  local ids = {}
  for i = 1, #found, 2 do ids[#ids + 1] = found[i] end
  local contents = redis.call('HMGET', KEYS[2], unpack(ids))
  local hands = redis.call('HMGET', KEYS[3], unpack(ids))
  local ends = whole(now + tonumber(ARGV[2]))
  local scores, fields = {}, {}
  for i, id in ipairs(ids) do
    if not contents[i] then
      gone[#gone + 1] = id
    else
      local due, redeliveries = tonumber(found[2 * i]), 0
      if hands[i] then
        local token, was, count = string.match(hands[i], '^([^|]*)|(%d+)|(%d+)$')
        redeliveries = tonumber(count)
        if token ~= '' then
          due = tonumber(was)
          redeliveries = redeliveries + 1
        end
      end
      scores[#scores + 1] = ends
      scores[#scores + 1] = id
      fields[#fields + 1] = id
      fields[#fields + 1] = ARGV[3] .. '|' .. whole(due) .. '|' .. redeliveries
      local n = #answer
      answer[n + 1] = id
      answer[n + 2] = math.max(0, now - due)
      answer[n + 3] = redeliveries
      answer[n + 4] = contents[i]
    end
  end
  drain()
  if #gone > 0 then
    redis.call('ZREM', KEYS[1], unpack(gone))
    redis.call('HDEL', KEYS[3], unpack(gone))
  end
  if #scores > 0 then
    redis.call('HSET', KEYS[3], unpack(fields))
    redis.call('ZADD', KEYS[1], unpack(scores))
  end
end
local nextAt = head()
if nextAt then answer[1] = math.max(0, nextAt - now) end
answer[2] = #gone
return answer
`;

/** ARGV: token, channel, slot, ms; then id, `d`one, `a`gain, `u`nanswered or `r`eleased, and delay of each entry. */
const end = `${TIME}${TELL}${DRAIN}
local ids = {}
for i = 5, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local hands = redis.call('HMGET', KEYS[3], unpack(ids))
local before = head()
local over, free, scores, fields, first = {}, {}, {}, {}, nil
for i, id in ipairs(ids) do
  local token, due, redeliveries = string.match(hands[i] or '', '^([^|]*)|(%d+)|(%d+)$')
  if token == ARGV[1] then
    local how = ARGV[3 + 3 * i]
    if how == 'd' then
      over[#over + 1] = id
    else
      local at = how == 'r' and tonumber(due) or from + tonumber(ARGV[4 + 3 * i])
      local count = tonumber(redeliveries)
      if how == 'a' then count = 0 elseif how == 'u' then count = count + 1 end
      scores[#scores + 1] = whole(at)
      scores[#scores + 1] = id
      if count == 0 then
        free[#free + 1] = id
      else
        fields[#fields + 1] = id
        fields[#fields + 1] = '|' .. whole(at) .. '|' .. count
      end
      if not first or at < first then first = at end
    end
  end
end
drain()
if #over > 0 then
  redis.call('HDEL', KEYS[2], unpack(over))
  redis.call('HDEL', KEYS[3], unpack(over))
  redis.call('ZREM', KEYS[1], unpack(over))
end
if #free > 0 then redis.call('HDEL', KEYS[3], unpack(free)) end
if #fields > 0 then redis.call('HSET', KEYS[3], unpack(fields)) end
if #scores > 0 then redis.call('ZADD', KEYS[1], unpack(scores)) end
tell(first, before, ARGV[2], ARGV[3], ARGV[4])
return 0
`;

/** ARGV: token, lease; then ids. Answers 1 for each that is held. */
const renew = `${TIME}${DRAIN}
local ids = {}
for i = 3, #ARGV do ids[#ids + 1] = ARGV[i] end
local hands = redis.call('HMGET', KEYS[3], unpack(ids))
local ends = whole(now + tonumber(ARGV[2]))
local answer, scores = {}, {}
for i, id in ipairs(ids) do
  local token = string.match(hands[i] or '', '^([^|]*)|')
  answer[i] = token == ARGV[1] and 1 or 0
  if answer[i] == 1 then
    scores[#scores + 1] = ends
    scores[#scores + 1] = id
  end
end
if #scores > 0 then
  drain()
  redis.call('ZADD', KEYS[1], 'XX', unpack(scores))
end
return answer
`;

/** ARGV: ids. Answers 1 for each that waited, and is gone now. */
const cancel = `${TIME}
local known = redis.call('ZMSCORE', KEYS[1], unpack(ARGV))
local hands = redis.call('HMGET', KEYS[3], unpack(ARGV))
local answer, over, seen = {}, {}, {}
for i, id in ipairs(ARGV) do
  local token = string.match(hands[i] or '', '^([^|]*)|')
  local isInHand = token and token ~= '' and known[i] and tonumber(known[i]) > now
  answer[i] = known[i] and not isInHand and not seen[id] and 1 or 0
  if answer[i] == 1 then
    seen[id] = true
    over[#over + 1] = id
  end
end
if #over > 0 then
  redis.call('HDEL', KEYS[2], unpack(over))
  redis.call('HDEL', KEYS[3], unpack(over))
  redis.call('ZREM', KEYS[1], unpack(over))
end
return answer
`;

export const scripts = {
  schedule: scriptOf(schedule),
  claim: scriptOf(claim),
  end: scriptOf(end),
  renew: scriptOf(renew),
  cancel: scriptOf(cancel),
};
