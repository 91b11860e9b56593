import type { Fault } from 'redrive';
import { describe, expect, it } from 'vitest';
import { parseAddress } from './address.ts';
import { readAllow } from './allow.ts';

function allowed(allow: unknown, isPublic = true) {
  const faults: Fault[] = [];
  const read = readAllow(allow, isPublic, faults);
  expect(faults).toEqual([]);
  return read;
}

function refusal(
  allow: unknown,
  host: string,
  address: string,
  isPublic = true,
): string | undefined {
  return allowed(allow, isPublic).refusal(host, parseAddress(address)!);
}

function faultsOf(allow: unknown): string[] {
  const faults: Fault[] = [];
  readAllow(allow, true, faults);
  return faults.map(({ path, message }) => `${path} ${message}`);
}

describe('allow', () => {
  it('lets public addresses through, and nothing else, where nothing is said', () => {
    expect(refusal(undefined, 'example.com', '93.184.215.14')).toBeUndefined();
    expect(refusal([], 'example.com', '2606:2800::1')).toBeUndefined();
    expect(refusal([], 'localhost', '127.0.0.1')).toBe('loopback');
    expect(refusal([], 'db', '10.0.0.1')).toBe('private');
    expect(refusal([], 'db', 'fd00::1')).toBe('private');
    expect(refusal([], 'x', '240.0.0.1')).toBe('reserved');
  });

  it('lets no public address through where that is not wanted', () => {
    expect(refusal(undefined, 'example.com', '93.184.215.14', false)).toBe('public');
    expect(refusal(['loopback', 'private'], 'example.com', '2606:2800::1', false)).toBe('public');
    expect(refusal(['loopback'], 'localhost', '127.0.0.1', false)).toBeUndefined();
    // Through a translator it is as public.
    expect(refusal([], 'example.com', '64:ff9b::1.1.1.1', false)).toBe('public');
  });

  it('opens public addresses by host, by range, or all of them', () => {
    const allow = ['api.example.com', '*.example.org', '1.1.1.0/24'];
    expect(refusal(allow, 'api.example.com', '93.184.215.14', false)).toBeUndefined();
    expect(refusal(allow, 'a.example.org', '93.184.215.14', false)).toBeUndefined();
    expect(refusal(allow, 'one.one', '1.1.1.1', false)).toBeUndefined();
    expect(refusal(allow, 'example.com', '93.184.215.14', false)).toBe('public');
    expect(refusal(['public'], 'example.com', '93.184.215.14', false)).toBeUndefined();
    expect(refusal(['public'], 'db', '10.0.0.1', false)).toBe('private');
    // Said twice is said once.
    expect(refusal(['public'], 'example.com', '93.184.215.14')).toBeUndefined();
  });

  it('admits only names whose addresses could be allowed', () => {
    const named = allowed(['api.example.com', '*.example.org', 'loopback', '127.0.0.0/8'], false);
    for (const host of ['API.example.com.', 'a.example.org', 'localhost', 'a.localhost.']) {
      expect(named.admits(host), host).toBe(true);
    }
    for (const host of ['example.com', 'example.org', 'evil-localhost', 'localhost.evil.test']) {
      expect(named.admits(host), host).toBe(false);
    }
    expect(allowed([], false).admits('localhost')).toBe(false);
    expect(allowed(['127.0.0.1'], false).admits('localhost')).toBe(true);
    for (const word of ['public', 'private', '10.0.0.0/8', '1.1.1.1', '127.0.0.0/7', '::/0']) {
      expect(allowed([word], false).admits('example.com'), word).toBe(true);
    }
    for (const word of ['loopback', '127.0.0.0/8', '127.0.0.1', '::1']) {
      expect(allowed([word], false).admits('example.com'), word).toBe(false);
    }
    expect(allowed([]).admits('example.com')).toBe(true);
  });

  it('opens loopback and private each for itself', () => {
    expect(refusal(['loopback'], 'a', '127.9.9.9')).toBeUndefined();
    expect(refusal(['loopback'], 'a', '::1')).toBeUndefined();
    expect(refusal(['loopback'], 'a', '10.0.0.1')).toBe('private');
    expect(refusal(['private'], 'a', '100.64.3.4')).toBeUndefined();
    expect(refusal(['private'], 'a', 'fc00::9')).toBeUndefined();
    expect(refusal(['private'], 'a', '127.0.0.1')).toBe('loopback');
  });

  it('opens a range, also where it is reached through IPv6', () => {
    const allow = ['10.1.0.0/16', '192.168.0.7', 'fd12::/16'];
    expect(refusal(allow, 'a', '10.1.255.255')).toBeUndefined();
    expect(refusal(allow, 'a', '10.2.0.0')).toBe('private');
    expect(refusal(allow, 'a', '192.168.0.7')).toBeUndefined();
    expect(refusal(allow, 'a', '192.168.0.8')).toBe('private');
    expect(refusal(allow, 'a', 'fd12::5')).toBeUndefined();
    expect(refusal(allow, 'a', '::ffff:10.1.0.1')).toBeUndefined();
    expect(refusal(allow, 'a', '64:ff9b::10.1.0.1')).toBeUndefined();
    expect(refusal(allow, 'a', '64:ff9b::10.2.0.1')).toBe('private');
  });

  it('opens a host by its whole name, or all hosts below one', () => {
    const allow = ['Billing.Internal', '*.svc.local'];
    expect(refusal(allow, 'billing.internal', '10.0.0.1')).toBeUndefined();
    expect(refusal(allow, 'billing.internal.', '127.0.0.1')).toBeUndefined();
    expect(refusal(allow, 'x.billing.internal', '10.0.0.1')).toBe('private');
    expect(refusal(allow, 'evilbilling.internal', '10.0.0.1')).toBe('private');
    expect(refusal(allow, 'a.b.svc.local', '10.0.0.1')).toBeUndefined();
    expect(refusal(allow, 'svc.local', '10.0.0.1')).toBe('private');
    expect(refusal(allow, 'evilsvc.local', '10.0.0.1')).toBe('private');
  });

  it.each([
    ['169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['64:ff9b::a9fe:a9fe', 'link-local'],
    ['2002:a9fe:a9fe::', 'link-local'],
    ['fd00:ec2::254', 'metadata'],
    ['100.100.100.200', 'metadata'],
    ['0.0.0.0', 'unspecified'],
    ['::', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
  ])('never opens %s, whatever is allowed', (address, kind) => {
    const words = ['public', 'loopback', 'private'];
    const allow = [...words, '0.0.0.0/0', '::/0', 'metadata.internal', '*.internal'];
    expect(refusal(allow, 'metadata.internal', address)).toBe(kind);
    expect(refusal(allow, 'metadata.internal', address, false)).toBe(kind);
  });

  it('says of each entry that makes no sense where it stands', () => {
    expect(
      faultsOf(['public', 'localhost:80', 'http://x', '10.0.0.0/40', '', 7, '*', '0x7f.1', 'a b']),
    ).toHaveLength(8);
    expect(faultsOf(['ok.example', 'a/b'])).toEqual([
      expect.stringMatching(/^allow\.1 is not 'public', 'loopback'/),
    ]);
    expect(faultsOf('loopback')).toEqual(['allow is not a list of hosts and ranges.']);
  });

  it('says that a range which is never allowed is useless', () => {
    expect(faultsOf(['169.254.0.0/16', '169.254.169.254', 'fe80::/10', '0.0.0.0/0'])).toEqual([
      "allow.0 '169.254.0.0/16' is link-local: such addresses are never allowed.",
      "allow.1 '169.254.169.254' is link-local: such addresses are never allowed.",
      "allow.2 'fe80::/10' is link-local: such addresses are never allowed.",
    ]);
  });
});
