import { describe, expect, it } from 'vitest';
import { checkUrl } from './url.ts';

describe('checkUrl', () => {
  it.each([
    'http://example.com',
    'https://example.com:8443/a?b=c#d',
    'http://[::1]:80/',
    'HTTPS://EXAMPLE.COM',
  ])('has nothing against %s', (url) => {
    expect(checkUrl(url)).toBeUndefined();
  });

  it.each([
    ['', 'NO_DESTINATION', /in full/],
    ['/hook', 'NO_DESTINATION', /in full/],
    ['example.com/hook', 'NO_DESTINATION', /in full/],
    ['http://', 'NO_DESTINATION', /in full/],
    ['http://1.2.3.4.5/', 'NO_DESTINATION', /in full/],
    ['ftp://example.com/', 'NO_DESTINATION', /'ftp:'/],
    ['file:///etc/passwd', 'NO_DESTINATION', /'file:'/],
    ['javascript:alert(1)', 'NO_DESTINATION', /'javascript:'/],
    ['http://user:pass@example.com/', 'INVALID_TASK', /secret/],
    ['http://user@example.com/', 'INVALID_TASK', /secret/],
    ['http://:pass@example.com/', 'INVALID_TASK', /secret/],
    ['http://example.com:0/', 'INVALID_TASK', /port 0/],
    [undefined, 'NO_DESTINATION', /in full/],
    [7, 'NO_DESTINATION', /in full/],
  ])('refuses %s as %s', (url, code, message) => {
    const fault = checkUrl(url);
    expect(fault).toMatchObject({ path: 'destination.address', code });
    expect(fault?.message).toMatch(message);
  });

  it('refuses one without end', () => {
    expect(checkUrl(`http://example.com/${'a'.repeat(9000)}`)?.message).toMatch(/8192 at most/);
  });

  it('does not repeat the credentials', () => {
    expect(checkUrl('http://user:hunter2@example.com/')?.message).not.toMatch(/hunter2|user:/);
  });
});
