// HTTP requests to the host, with the token, the session and one kind of error.

const TOKEN_KEY = "jackfield.token";

/** A request that failed. */
export class ApiError extends Error {
  constructor(status, { code = "unreachable", message, suggestion = null, retryAfter = null }) {
    super(message);
    this.status = status;
    this.code = code;
    this.suggestion = suggestion;
    this.retryAfter = retryAfter;
  }
}

/** Returns the URL of a path of the host; the page may be served below a prefix. */
export function hostUrl(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI);
}

/**
 * The HTTP interface of the host. Events: `unauthorized` (a token is missing or not accepted), `banned` (detail:
 * message, retryAfter), `token` (it has changed) and `registry` (a development host has reloaded its tools).
 */
export class Api extends EventTarget {
  /** The token of the session that requests belong to, if there is one. */
  session = null;

  get token() {
    return sessionStorage.getItem(TOKEN_KEY);
  }

  set token(value) {
    if (value) sessionStorage.setItem(TOKEN_KEY, value);
    else sessionStorage.removeItem(TOKEN_KEY);
    this.dispatchEvent(new Event("token"));
  }

  /** Gets JSON; `params` become the query. */
  get(path, { params = {}, ...options } = {}) {
    const url = hostUrl(path);
    for (const [name, value] of Object.entries(params)) {
      if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
    }
    return this.#json(url, options);
  }

  /** Posts a JSON body; returns the JSON of the response. */
  post(path, body, options = {}) {
    const headers = { "Content-Type": "application/json", ...options.headers };
    return this.#json(hostUrl(path), { ...options, method: "POST", body: JSON.stringify(body), headers });
  }

  /**
   * Returns the response, also if it is not JSON; throws an `ApiError` for a failure. `session` is the token of a
   * session: by default that of this page; null for none.
   */
  async request(url, { session = this.session, headers = {}, ...options } = {}) {
    const allHeaders = new Headers(headers);
    if (this.token) allHeaders.set("Authorization", `Bearer ${this.token}`);
    if (session) allHeaders.set("Jackfield-Session", session);
    let response;
    try {
      response = await fetch(url, { ...options, headers: allHeaders });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, { message: "The host cannot be reached.", suggestion: "Try again in a moment." });
    }
    if (!response.ok) throw await this.#failure(response);
    return response;
  }

  async #json(url, options) {
    return (await this.request(url, options)).json();
  }

  async #failure(response) {
    let body = null;
    try {
      body = await response.json();
    } catch {
      // A proxy answered instead of the host; use the status.
    }
    const details = body?.error?.message ? body.error : {
      ...body?.error,
      message: `The server responded with status ${response.status}, without an explanation.`,
      suggestion: "Try again in a moment. If that does not help, check the log of the host or of the proxy in front of it.",
    };
    const error = new ApiError(response.status, { code: `http_${response.status}`, ...details });
    // A failed tool call has a result besides the error.
    error.body = body;
    if (response.status === 401) this.dispatchEvent(new CustomEvent("unauthorized", { detail: error }));
    if (error.code === "banned") this.dispatchEvent(new CustomEvent("banned", { detail: error }));
    return error;
  }
}
