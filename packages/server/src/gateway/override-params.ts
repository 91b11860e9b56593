/** A JSON body with other values in some of its fields. One that is no JSON object stays as it is. */
export function overridden(
  bytes: Buffer,
  contentType: string | undefined,
  params: Readonly<Record<string, unknown>>,
): Buffer {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType ?? '')) return bytes;
  const text = bytes.toString('utf8');
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return bytes;
  } catch {
    // The provider says what is wrong with it.
    return bytes;
  }
  const left = new Map(Object.entries(params));
  const members: string[] = [];
  for (const { name, text: member } of membersOf(text)) {
    if (!Object.hasOwn(params, name)) members.push(member);
    else if (left.has(name)) members.push(written(name, left.get(name)));
    left.delete(name);
  }
  for (const [name, value] of left) members.push(written(name, value));
  return Buffer.from(`{${members.join(',')}}`);
}

function written(name: string, value: unknown): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

/** The members of a JSON object, as they are written: a number may have more digits than JavaScript can hold. */
function membersOf(text: string): { name: string; text: string }[] {
  const members: { name: string; text: string }[] = [];
  let depth = 0;
  let start = 0;
  let nameEnd = 0;
  for (let i = 0; i < text.length; i++) {
    const mark = text[i];
    const isEnd = depth === 1 && (mark === ',' || mark === '}');
    if (isEnd && nameEnd > 0) {
      const name = JSON.parse(text.slice(start, nameEnd)) as string;
      members.push({ name, text: text.slice(start, i).trim() });
      nameEnd = 0;
    }
    if (isEnd || (mark === '{' && depth === 0)) start = i + 1;
    if (mark === '{' || mark === '[') depth += 1;
    else if (mark === '}' || mark === ']') depth -= 1;
    else if (mark === ':' && depth === 1) nameEnd = i;
    else if (mark === '"') i = endOfString(text, i);
  }
  return members;
}

/** Where the string that begins here ends. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; ; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i;
  }
}
