// async-retry ships no types.
declare module 'async-retry' {
  interface Options {
    retries?: number;
    factor?: number;
    minTimeout?: number;
    maxTimeout?: number;
    randomize?: boolean;
  }
  export default function retry<T>(fn: () => Promise<T>, options?: Options): Promise<T>;
}
