import { createHash } from 'node:crypto';

/**
 * One script for all changes, run by its hash. A key is a hash: o owner, f fingerprint, t fencing token, n claims,
 * l end of the lease (ms of the server's clock), k kind of outcome, v its text, m metadata, r time of the record. Results
 * that expire are deleted by the server; claims never are, since an owner that crashed must still be known.
 */
export const script = `
local function fields(key)
  local r = redis.call('HMGET', key, 'o', 'f', 't', 'n', 'l', 'k', 'v', 'm', 'r')
  return { owner = r[1], print = r[2], token = r[3], claims = r[4], lease = r[5], kind = r[6], text = r[7], meta = r[8], at = r[9] }
end
local key, act, owner = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local k = fields(key)
local function seen()
  if not k.owner then return { 'absent' } end
  if k.kind then return { 'done', k.print, k.kind, k.text, k.at, k.meta or false } end
  local left = tonumber(k.lease) - now
  if left > 0 then return { 'held', k.print, string.format('%.0f', left) } end
  return { 'abandoned', k.print }
end
if act == 'read' then return seen() end
if act == 'claim' then
  local print, lease, takeOver = ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
  if k.owner and (k.owner ~= owner or k.kind) then
    local found = seen()
    local same = print == '' or k.print == '' or print == k.print
    if found[1] ~= 'abandoned' or not takeOver or not same then return found end
  end
  local claims = 1
  if k.owner then claims = tonumber(k.claims) + (k.owner == owner and 0 or 1) end
  local token = math.max(tonumber(k.token or 0) + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
  if print == '' then print = k.print or '' end
  local text = string.format('%.0f', token)
  redis.call('HSET', key, 'o', owner, 'f', print, 't', text, 'n', claims, 'l', string.format('%.0f', now + lease))
  return { 'claimed', text, tostring(claims) }
end
if act == 'clear' then return redis.call('DEL', key) end
if not k.owner or k.owner ~= owner then return 0 end
if act == 'record' then
  redis.call('HSET', key, 'k', ARGV[3], 'v', ARGV[4], 'r', string.format('%.0f', now))
  if ARGV[5] ~= '' then redis.call('HSET', key, 'm', ARGV[5]) end
  if ARGV[6] ~= '' then redis.call('PEXPIRE', key, ARGV[6]) end
  return 1
end
if k.kind then return 0 end
if act == 'renew' then
  redis.call('HSET', key, 'l', string.format('%.0f', now + tonumber(ARGV[3])))
  return 1
end
if act == 'release' then return redis.call('DEL', key) end
return redis.error_reply('unknown act')
`;

export const scriptHash = createHash('sha1').update(script).digest('hex');
