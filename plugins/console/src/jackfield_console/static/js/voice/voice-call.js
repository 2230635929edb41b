// A voice call: microphone to host, audio of the host to the speaker, playback reports to the host.

import { SessionSocket } from "../session-socket.js";
import { VoiceAudio } from "./audio.js";
import { WebRtcPeer } from "./webrtc.js";

/** One call. Events: `level` (detail: 0 to 1), `change` (of its state), `ended` (detail: the reason). */
export class VoiceCall extends EventTarget {
  #api;
  #audio = null;
  #peer = null;
  #playing = false;
  #state = "initializing";
  #hasEnded = false;

  /** Whether the call was connected. */
  wasConnected = false;

  constructor(api) {
    super();
    this.#api = api;
    this.socket = new SessionSocket(api, "voice");
    this.socket.addEventListener("message", ({ detail }) => this.#handle(detail));
    this.socket.addEventListener("audio", ({ detail }) => this.#audio?.play(detail));
    this.socket.addEventListener("state", () => this.#notifyChange());
    this.socket.addEventListener("closed", ({ detail }) => this.#end(detail.text));
  }

  /**
   * Opens the microphone and connects. With `direct`, audio goes from the browser to the provider over WebRTC;
   * `handover` is the token of a text session whose pending request this call takes over, `model` the chosen model.
   */
  async start({ direct = false, handover = null, model = null } = {}) {
    this.#audio = await VoiceAudio.open({
      onFrame: (frame, level) => {
        this.dispatchEvent(new CustomEvent("level", { detail: level }));
        if (!this.#peer) this.socket.sendAudio(frame);
      },
      onPlayback: (item, ms, playing) => this.#reportPlayback(item, ms, playing),
    });
    if (!direct) {
      this.socket.open({ handover, model });
      return;
    }
    this.#peer = new WebRtcPeer(this.#api, () => this.#end("The connection was lost. Call again to continue."));
    this.socket.open({ token: await this.#peer.call(this.#audio.stream) });
  }

  /** The state of the call, as the host names it. */
  get state() {
    if (this.socket.state !== "open") return this.socket.session ? "reconnecting" : "initializing";
    // The model finishes long before playback does: show what the user hears.
    return this.#playing ? "speaking" : this.#state;
  }

  mute(muted) {
    this.#audio?.mute(muted);
  }

  /** The microphones to choose from. */
  async microphones() {
    return (await this.#audio?.microphones()) ?? [];
  }

  async useMicrophone(deviceId) {
    await this.#audio.useMicrophone(deviceId);
    await this.#peer?.replace(this.#audio.stream);
  }

  hangUp() {
    this.socket.end();
    this.#end("");
  }

  #handle(message) {
    if (message.type === "audio") this.#audio.startItem(message.item);
    else if (message.type === "speech_started" || message.type === "interrupted") this.#audio.drop();
    else if (message.type === "turn_complete") this.#audio.finish();
    else if (message.type === "session_status" || message.type === "session") this.#state = message.state;
    else return;
    if (message.type === "session") this.#onSession();
    this.#notifyChange();
  }

  #onSession() {
    // After a reconnect, the page cannot know whether the host is still attached to the call at the provider.
    if (this.wasConnected && this.#peer) this.#end("The connection was lost. Call again to continue.");
    this.wasConnected = true;
  }

  #reportPlayback(item, ms, playing) {
    if (item) this.socket.send({ type: "playback", item, ms });
    this.#playing = playing;
    this.#notifyChange();
  }

  #end(reason) {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#peer?.close();
    this.#audio?.close();
    if (this.socket.state === "open") this.socket.end();
    this.dispatchEvent(new CustomEvent("ended", { detail: reason }));
  }

  #notifyChange() {
    this.dispatchEvent(new Event("change"));
  }
}
