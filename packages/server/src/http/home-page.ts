/** What a browser gets at `/`: what this is, how it is, and where to go. No script, nothing from elsewhere. */
import { hash } from 'node:crypto';
import type { Check } from '../service-context.ts';

interface HomeFacts {
  name: string;
  /** Absent for somebody who showed no token. */
  version?: string;
  instance?: string;
  ready: boolean;
  checks: readonly Check[];
  hasNotifications: boolean;
  hasRouting: boolean;
  /** Where it listens; 0: not known. */
  port: number;
}

/** Where commands ask unless told otherwise. */
const DEFAULT_PORT = 8086;

type Place = readonly [path: string, text: string];

const places: readonly Place[] = [
  ['/health/ready', 'Whether it can do its work, and what is missing'],
  ['/api/v1/review', 'The inbox: what never worked'],
  ['/api/v1/review/groups', 'The same by cause'],
  ['/api/v1/retries', 'Messages in the schedule'],
  ['/api/v1/lanes', 'Where messages go, and whether they are let through'],
  ['/api/v1/criteria', 'Criteria for workflow engines, with their settings'],
  ['/metrics', 'Numbers for Prometheus'],
  ['/openapi.json', 'The API as OpenAPI 3.1'],
];

const ofNotifications: Place = ['/api/v1/notifications', 'Notifications, and their retries'];
const ofRouting: Place = [
  '/api/v1/route/policies',
  'Routing policies, and what is wrong with them',
];

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; color: #1c2024; background: #fff; }
  h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1rem; margin: 2rem 0 .3rem; }
  code, pre { font: 14px/1.5 ui-monospace, monospace; } pre { background: #f3f4f6; padding: .8rem; border-radius: 6px; overflow-x: auto; }
  table { border-collapse: collapse; } td { padding: .15rem 1rem .15rem 0; vertical-align: top; } td:not(:last-child) { white-space: nowrap; } a { color: #0b57d0; }
  .ok { color: #12703a; } .bad { color: #b3261e; } .warn { color: #8a5300; } .dim { color: #5f6670; }
  @media (prefers-color-scheme: dark) { body { color: #e6e8ea; background: #16181b; } pre { background: #23262b; } a { color: #8ab4f8; } .ok { color: #6fd195; } .bad { color: #f2938c; } .warn { color: #f0b35e; } .dim { color: #9aa1aa; } }
`;

/** Only this very style may be used on the page. */
export const homePolicy = `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

export function homePage(facts: HomeFacts): string {
  const { name, version, instance, ready, checks, hasNotifications, hasRouting, port } = facts;
  const shown = [
    ...places,
    ...(hasNotifications ? [ofNotifications] : []),
    ...(hasRouting ? [ofRouting] : []),
  ];
  const state = ready ? '<b class="ok">ready</b>' : '<b class="bad">not ready</b>';
  const known = [version, instance].filter((one) => one !== undefined).map(escaped);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(name)}</title><style>${style}</style></head><body>
<h1>${escaped(name)} <span class="dim">${known.join(' · ')}</span></h1>
<p>This is <b>Redrive</b>, which delivers messages until they work, and keeps what never worked in an inbox. It is ${state}.</p>
<table>${checks.map(rowOf).join('')}</table>
<h2>Where to go</h2>
<table>${shown.map(([path, text]) => `<tr><td><a href="${path}"><code>${path}</code></a></td><td>${text}</td></tr>`).join('')}</table>
<h2>A first message</h2>
<pre>${port === 0 || port === DEFAULT_PORT ? '' : `export REDRIVE_URL=http://127.0.0.1:${port}\n`}redrive submit http://127.0.0.1:9000/orders '{"order":17}'
redrive list
redrive review groups</pre>
<p class="dim"><code>redrive --help</code> lists all commands. <code>redrive doctor</code> says what to do when something is not ok. In a checkout, run <code>npx redrive</code>.</p>
</body></html>
`;
}

function rowOf({ name, ok, detail = '' }: Check): string {
  const well = detail === '' ? '<span class="ok">ok</span>' : '<span class="warn">warning</span>';
  const mark = ok ? well : '<span class="bad">not ok</span>';
  return `<tr><td>${escaped(name)}</td><td>${mark}</td><td>${escaped(detail)}</td></tr>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

/** Whether a browser asks: a program that takes anything is given JSON. */
export function wantsPage(accept: string | undefined): boolean {
  return accept?.split(',').some((one) => one.trim().startsWith('text/html')) === true;
}
