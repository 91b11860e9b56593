/**
 * The scripts of a key, run by their hashes. A key is a hash: o owner, f fingerprint, t fencing token, n claims, l end of the
 * lease (ms of the server's clock), k kind of outcome, v its text, m metadata, r time of the record. Results that expire are
 * deleted by the server; claims never are, since an owner that crashed must still be known.
 *
 * Almost every key is claimed once and recorded once: these two paths read as little as they can.
 */
import { scriptOf } from '../link.ts';

const TIME = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(n) return string.format('%.0f', n) end
`;

/** What somebody else finds. */
const SEEN = `
local function seen(key)
  local r = redis.call('HMGET', key, 'o', 'f', 'l', 'k', 'v', 'r', 'm')
  if not r[1] then return { 'absent' } end
  if r[4] then return { 'done', r[2], r[4], r[5], r[6], r[7] } end
  local left = r[3] - now
  if left > 0 then return { 'held', r[2], whole(left) } end
  return { 'abandoned', r[2] }
end
`;

/** ARGV: owner, fingerprint, ms of the lease, '1' to take over what was abandoned. */
const claim = `${TIME}
local key, owner, print = KEYS[1], ARGV[1], ARGV[2]
local token, claims = time[1] * 1000000 + time[2], 1
if redis.call('EXISTS', key) == 1 then
  ${SEEN}
  local r = redis.call('HMGET', key, 'o', 'f', 't', 'n', 'k')
  if r[1] ~= owner or r[5] then
    local found = seen(key)
    local same = print == '' or r[2] == '' or print == r[2]
    if found[1] ~= 'abandoned' or ARGV[4] ~= '1' or not same then return found end
  end
  token = math.max(r[3] + 1, token)
  claims = r[4] + (r[1] == owner and 0 or 1)
  if print == '' then print = r[2] end
end
redis.call('HSET', key, 'o', owner, 'f', print, 't', whole(token), 'n', claims, 'l', whole(now + ARGV[3]))
return { 'claimed', whole(token), tostring(claims) }
`;

/** ARGV: owner, kind, text, metadata or '', ms until it expires or ''. */
const record = `
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return 0 end
${TIME}
redis.call('HSET', KEYS[1], 'k', ARGV[2], 'v', ARGV[3], 'r', whole(now))
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'm', ARGV[4]) end
if ARGV[5] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return 1
`;

/** Held by this owner (ARGV[1]), and not recorded yet. */
const MINE = `
local r = redis.call('HMGET', KEYS[1], 'o', 'k')
if r[1] ~= ARGV[1] or r[2] then return 0 end
`;

/** ARGV: owner, ms of the lease. */
const renew = `${MINE}${TIME}
redis.call('HSET', KEYS[1], 'l', whole(now + ARGV[2]))
return 1
`;

export const scripts = {
  claim: scriptOf(claim),
  record: scriptOf(record),
  renew: scriptOf(renew),
  read: scriptOf(`${TIME}${SEEN}return seen(KEYS[1])`),
  /** ARGV: owner. */
  release: scriptOf(`${MINE}return redis.call('DEL', KEYS[1])`),
  clear: scriptOf(`return redis.call('DEL', KEYS[1])`),
};
