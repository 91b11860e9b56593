/** What the settings of the Cyoda member need beside their kinds. */
import type { Fault } from 'redrive';
import { hiddenUrl } from './hide.ts';
import type { Settings } from './settings.ts';
import { variables } from './variables.ts';

type CyodaSettings = Pick<
  Settings,
  'cyodaUrl' | 'cyodaToken' | 'cyodaTokenFile' | 'cyodaTags' | 'cyodaLegalEntity'
>;

const MAX_TAGS = 50;
/** What HTTP takes in a header. Anything else would be refused there, with the token in the error. */
const TOKEN = /^[\x21-\x7e]+$/;
const TAG = /^[^\s,]{1,128}$/;

export function checkCyoda(
  settings: CyodaSettings,
  isLoopback: (host: string) => boolean,
): { faults: Fault[]; warnings: string[] } {
  const { cyodaUrl, cyodaToken, cyodaTokenFile, cyodaTags } = settings;
  const faults: Fault[] = [];
  const add = (path: string, message: string) =>
    faults.push({ path, code: 'INVALID_VALUE', message });
  if (cyodaToken !== undefined && cyodaTokenFile !== undefined) {
    add(variables.cyodaToken.env, 'CYODA_TOKEN_FILE is set too. Give one of them.');
  }
  if (cyodaToken !== undefined && !isToken(cyodaToken)) {
    const message = `a text of ${cyodaToken.length} characters is not a token of visible ASCII characters without spaces.`;
    add(variables.cyodaToken.env, message);
  }
  if (cyodaTags.length === 0 || cyodaTags.length > MAX_TAGS || !cyodaTags.every(isTag)) {
    const message = `needs 1 to ${MAX_TAGS} tags of 1 to 128 characters without spaces, such as retry-timing.`;
    add(variables.cyodaTags.env, message);
  }
  const url = cyodaUrl === undefined ? undefined : URL.parse(cyodaUrl);
  if (!url) return { faults, warnings: [] };
  const wrong = urlFault(url);
  if (wrong !== undefined) add(variables.cyodaUrl.env, `'${hiddenUrl(url.href)}' ${wrong}`);
  return { faults, warnings: warningsOf(settings, url, isLoopback) };
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

function isTag(tag: string): boolean {
  return TAG.test(tag);
}

/** Only a host and a port: anything else would be ignored, and may be a secret in the wrong place. */
function urlFault(url: URL): string | undefined {
  const form = 'Write it as grpc://host:9090 or grpcs://host:9090';
  if (url.hostname === '') return `names no host. ${form}.`;
  if (url.username !== '' || url.password !== '') {
    return `holds a user or a password. ${form}, and give the token as CYODA_TOKEN or CYODA_TOKEN_FILE.`;
  }
  const rest = `${url.pathname}${url.search}${url.hash}`;
  return rest === '' || rest === '/' ? undefined : `holds more than a host and a port. ${form}.`;
}

function warningsOf(
  { cyodaToken, cyodaTokenFile }: CyodaSettings,
  { protocol, hostname }: URL,
  isLoopback: (host: string) => boolean,
): string[] {
  const hasToken = cyodaToken !== undefined || cyodaTokenFile !== undefined;
  if (!hasToken || protocol !== 'grpc:' || isLoopback(hostname)) return [];
  return [
    `CYODA_URL: the token goes to ${hostname} without encryption. Use grpcs:// unless the network is trusted.`,
  ];
}
