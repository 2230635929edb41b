// The last build of a development host: its errors, or the tools that it reloaded.

import { element, replace } from "../dom.js";

const RETRY_MS = 1000;

/** How long a successful build is shown. */
const SHOWN_MS = 6000;

/** Follows the builds of `jackfield dev` and shows them above every view; for operators. */
export class BuildStatus {
  #api;
  #root;
  #number = null;
  #hide = null;

  constructor(api, root) {
    this.#api = api;
    this.#root = root;
    api.addEventListener("token", () => this.#number === null && this.start());
  }

  /** Follows the builds, if the host reloads its tools. */
  async start() {
    try {
      const { development } = await this.#api.get("status", { session: null });
      if (development) this.#show(await this.#api.get("development", { session: null }), true);
    } catch {
      // The user has no token yet, or is not an operator.
    }
    while (this.#number !== null) await this.#follow();
  }

  async #follow() {
    const after = this.#number;
    try {
      const status = await this.#api.get("development", { params: { after }, session: null });
      if (status.number !== after) this.#show(status, false);
    } catch (error) {
      // A restarted host may be an ordinary one.
      if (error.code === "not_development") this.#number = null;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  #show({ number, ok, message, findings, tools }, first) {
    clearTimeout(this.#hide);
    this.#number = number;
    if (ok) {
      if (tools.length) this.#api.dispatchEvent(new Event("registry"));
      replace(this.#root, !first && message && element("p", { class: "banner calm", data: { testid: "build" } }, message));
      this.#hide = setTimeout(() => replace(this.#root), SHOWN_MS);
      return;
    }
    replace(this.#root, element("section", { class: "banner build-errors", "aria-label": "Build errors", data: { testid: "build" } },
      element("p", {}, element("strong", {}, "The changes have not taken effect: "), message),
      findings.length > 0 && element("ul", {}, findings.map(finding))));
  }
}

function finding({ code, title, message, subject, distribution, file, location, path, hint }) {
  const place = [location ?? file, path].filter(Boolean).join(" ");
  return element("li", {},
    element("p", {}, element("strong", {}, `${code} ${title}`), ` in ${subject ?? distribution ?? "this environment"}`),
    element("p", {}, place && element("code", {}, place), place ? ": " : "", message),
    element("p", { class: "hint" }, hint));
}
