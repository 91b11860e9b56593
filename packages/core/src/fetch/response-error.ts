/** A response that says that the request failed: 408, 425, 429, 5xx, or a status that the policy's `retryOn` names. */
export class ResponseError extends Error {
  override readonly name = 'ResponseError';
  /** `HTTP_503`. */
  readonly code: string;
  readonly status: number;
  readonly response: Response;
  #isReleased = false;

  constructor(response: Response, method: string, url: string) {
    const { status, statusText } = response;
    super(`${method} ${withoutSecrets(url)} answered ${status}${statusText && ` ${statusText}`}.`);
    this.code = `HTTP_${status}`;
    this.status = status;
    this.response = response;
  }

  /** Where a Retry-After is looked for. */
  get headers(): Headers {
    return this.response.headers;
  }

  /** True once the body was cancelled, since another attempt followed. */
  get isReleased(): boolean {
    return this.#isReleased;
  }

  /** @internal The loop cancels the body of what is thrown before it tries again. */
  get body(): { locked: boolean; cancel: () => unknown } {
    const { body } = this.response;
    return {
      locked: body?.locked ?? false,
      cancel: () => {
        this.#isReleased = true;
        return body?.cancel();
      },
    };
  }
}

/** Host and path: a query or a password may be secret, and messages end in logs. */
function withoutSecrets(url: string): string {
  try {
    const { origin, pathname } = new URL(url);
    return `${origin}${pathname}`;
  } catch {
    // A relative URL.
    return url.replace(/[?#].*$/s, '');
  }
}
