// A voice call: microphone to host, audio of the host to the speaker, playback reports to the host.

import { SessionSocket } from "../session-socket.js";
import { VoiceAudio } from "./audio.js";
import { WebRtcPeer } from "./webrtc.js";

/** One call. Events: `level` (detail: 0 to 1), `change` (what it is doing), `ended` (detail: why, in a sentence). */
export class VoiceCall extends EventTarget {
  #api;
  #audio = null;
  #peer = null;
  #playing = false;
  #state = "initializing";
  #over = false;

  /** Whether the call was connected. */
  begun = false;

  constructor(api) {
    super();
    this.#api = api;
    this.socket = new SessionSocket(api, "voice");
    this.socket.addEventListener("message", ({ detail }) => this.#take(detail));
    this.socket.addEventListener("audio", ({ detail }) => this.#audio?.play(detail));
    this.socket.addEventListener("state", () => this.#change());
    this.socket.addEventListener("closed", ({ detail }) => this.#end(detail.sentence));
  }

  /**
   * Opens the microphone and connects. With `direct`, audio goes from the browser to the provider over WebRTC;
   * `handover` is the token of a text session whose pending request this call takes over.
   */
  async start({ direct = false, handover = null } = {}) {
    this.#audio = await VoiceAudio.open({
      onFrame: (frame, level) => {
        this.dispatchEvent(new CustomEvent("level", { detail: level }));
        if (!this.#peer) this.socket.sendAudio(frame);
      },
      onPlayback: (item, ms, playing) => this.#reportPlayback(item, ms, playing),
    });
    if (!direct) {
      this.socket.open({ handover });
      return;
    }
    this.#peer = new WebRtcPeer(this.#api, () => this.#end("The call was cut off. Call again to continue."));
    this.socket.open({ token: await this.#peer.call(this.#audio.stream) });
  }

  /** What the call is doing, as the host names it. */
  get state() {
    if (this.socket.state !== "open") return this.socket.session ? "reconnecting" : "initializing";
    // The model finishes long before playback does: show what the user hears.
    return this.#playing ? "speaking" : this.#state;
  }

  mute(muted) {
    this.#audio?.mute(muted);
  }

  hangUp() {
    this.socket.end();
    this.#end("");
  }

  #take(message) {
    if (message.type === "audio") this.#audio.startItem(message.item);
    else if (message.type === "speech_started" || message.type === "interrupted") this.#audio.drop();
    else if (message.type === "turn_complete") this.#audio.finish();
    else if (message.type === "session_status" || message.type === "session") this.#state = message.state;
    else return;
    if (message.type === "session") this.#join();
    this.#change();
  }

  #join() {
    // After a reconnect, nothing tells whether the host is still attached to the call at the provider.
    if (this.begun && this.#peer) this.#end("The call was cut off. Call again to continue.");
    this.begun = true;
  }

  #reportPlayback(item, ms, playing) {
    if (item) this.socket.send({ type: "playback", item, ms });
    this.#playing = playing;
    this.#change();
  }

  #end(sentence) {
    if (this.#over) return;
    this.#over = true;
    this.#peer?.close();
    this.#audio?.close();
    if (this.socket.state === "open") this.socket.end();
    this.dispatchEvent(new CustomEvent("ended", { detail: sentence }));
  }

  #change() {
    this.dispatchEvent(new Event("change"));
  }
}
