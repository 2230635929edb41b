// HTTP requests to the host, with token, session and one form of errors.

const TOKEN = "jackfield.token";

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

/** The URL of a path of the host; the page may be served below a prefix. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI);
}

/**
 * The HTTP interface of the host. Events: `unauthorized` (a token is missing or not accepted), `banned` (detail:
 * message, retryAfter) and `token` (it has changed).
 */
export class Api extends EventTarget {
  /** The token of the session that requests belong to, if there is one. */
  session = null;

  get token() {
    return sessionStorage.getItem(TOKEN);
  }

  set token(value) {
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
    this.dispatchEvent(new Event("token"));
  }

  /** The JSON at a path; `params` become the query. */
  get(path, { params = {}, ...options } = {}) {
    const url = address(path);
    for (const [name, value] of Object.entries(params)) {
      if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
    }
    return this.#json(url, options);
  }

  /** The JSON answer to a JSON body. */
  post(path, body, options = {}) {
    const headers = { "Content-Type": "application/json", ...options.headers };
    return this.#json(address(path), { ...options, method: "POST", body: JSON.stringify(body), headers });
  }

  /**
   * The answer itself, for what is no JSON; an `ApiError` when it is a failure. `session` names a session by its
   * token, and is the one of this page when left out; null names none.
   */
  async request(url, { session = this.session, headers = {}, ...options } = {}) {
    const said = new Headers(headers);
    if (this.token) said.set("Authorization", `Bearer ${this.token}`);
    if (session) said.set("Jackfield-Session", session);
    let answer;
    try {
      answer = await fetch(url, { ...options, headers: said });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, { message: "The host cannot be reached.", suggestion: "Try again in a moment." });
    }
    if (!answer.ok) throw await this.#failure(answer);
    return answer;
  }

  async #json(url, options) {
    return (await this.request(url, options)).json();
  }

  async #failure(answer) {
    let body = null;
    try {
      body = await answer.json();
    } catch {
      // It was not the host that answered; use the status.
    }
    const told = body?.error ?? {};
    const message = told.message ?? `The host answered with ${answer.status}.`;
    const error = new ApiError(answer.status, { code: `http_${answer.status}`, ...told, message });
    // A failed tool call has an answer besides the error.
    error.body = body;
    if (answer.status === 401) this.dispatchEvent(new CustomEvent("unauthorized", { detail: error }));
    if (error.code === "banned") this.dispatchEvent(new CustomEvent("banned", { detail: error }));
    return error;
  }
}
