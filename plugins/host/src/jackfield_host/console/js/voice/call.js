// A call: the microphone goes to the host, the host's sound to the loudspeaker, and it is told what was heard.

import { Line } from "../line.js";
import { Peer } from "./peer.js";
import { Sound } from "./sound.js";

/** One call. Events: `level` (detail: 0 to 1), `change` (what it is doing), `ended` (detail: why, in a sentence). */
export class VoiceCall extends EventTarget {
  #api;
  #sound = null;
  #peer = null;
  #playing = false;
  #state = "initializing";
  #over = false;

  /** Whether it came about at all. */
  begun = false;

  constructor(api) {
    super();
    this.#api = api;
    this.line = new Line(api, "voice");
    this.line.addEventListener("message", ({ detail }) => this.#take(detail));
    this.line.addEventListener("sound", ({ detail }) => this.#sound?.play(detail));
    this.line.addEventListener("state", () => this.#change());
    this.line.addEventListener("closed", ({ detail }) => this.#end(detail.sentence));
  }

  /**
   * Asks for the microphone and rings up. `direct` lets the sound go from the browser to the provider, where the
   * provider offers that; `handover` is the token of a text session whose request this call takes up.
   */
  async start({ direct = false, handover = null } = {}) {
    this.#sound = await Sound.open({
      onFrame: (frame, level) => {
        this.dispatchEvent(new CustomEvent("level", { detail: level }));
        if (!this.#peer) this.line.sendSound(frame);
      },
      onHeard: (item, ms, playing) => this.#heard(item, ms, playing),
    });
    if (!direct) {
      this.line.open({ handover });
      return;
    }
    this.#peer = new Peer(this.#api, () => this.#end("The call was cut off. Call again to go on."));
    this.line.open({ token: await this.#peer.call(this.#sound.stream) });
  }

  /** What the call is doing, as the host names it. */
  get state() {
    if (this.line.state !== "open") return this.line.session ? "reconnecting" : "initializing";
    // The model is done long before its speech is: what the user hears counts.
    return this.#playing ? "speaking" : this.#state;
  }

  mute(muted) {
    this.#sound?.mute(muted);
  }

  hangUp() {
    this.line.end();
    this.#end("");
  }

  #take(message) {
    if (message.type === "audio") this.#sound.turnTo(message.item);
    else if (message.type === "speech_started" || message.type === "interrupted") this.#sound.drop();
    else if (message.type === "turn_complete") this.#sound.finish();
    else if (message.type === "session_status" || message.type === "session") this.#state = message.state;
    else return;
    if (message.type === "session") this.#join();
    this.#change();
  }

  #join() {
    // Whether a host that was lost still stands beside the provider's call cannot be told from here.
    if (this.begun && this.#peer) this.#end("The call was cut off. Call again to go on.");
    this.begun = true;
  }

  #heard(item, ms, playing) {
    if (item) this.line.send({ type: "playback", item, ms });
    this.#playing = playing;
    this.#change();
  }

  #end(sentence) {
    if (this.#over) return;
    this.#over = true;
    this.#peer?.close();
    this.#sound?.close();
    if (this.line.state === "open") this.line.end();
    this.dispatchEvent(new CustomEvent("ended", { detail: sentence }));
  }

  #change() {
    this.dispatchEvent(new Event("change"));
  }
}
