// The microphone and the loudspeaker of a call.

const RATE = 24_000;

const WISHES = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

/** Both ends of a call's sound. `onFrame(buffer, level)` and `onHeard(item, ms, playing)` are told what happens. */
export class Sound {
  /** What the microphone hears. */
  stream = null;
  #context;
  #playback;
  #item = "";
  #dropped = "";

  static async open({ onFrame, onHeard }) {
    const made = new Sound();
    made.stream = await navigator.mediaDevices.getUserMedia({ audio: WISHES });
    try {
      await made.#connect(onFrame, onHeard);
    } catch (error) {
      made.close();
      throw error;
    }
    return made;
  }

  async #connect(onFrame, onHeard) {
    let source;
    try {
      this.#context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
      source = this.#context.createMediaStreamSource(this.stream);
    } catch {
      // Some browsers join no microphone to a context of another rate; then the worklets resample.
      await this.#context?.close();
      this.#context = new AudioContext({ latencyHint: "interactive" });
      source = this.#context.createMediaStreamSource(this.stream);
    }
    const worklet = this.#context.audioWorklet;
    await Promise.all(["capture", "playback"].map((name) =>
      worklet.addModule(new URL(`./${name}-worklet.js`, import.meta.url))));
    const capture = new AudioWorkletNode(this.#context, "jf-capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => onFrame(data.frame, data.level);
    source.connect(capture);
    this.#playback = new AudioWorkletNode(this.#context, "jf-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.#playback.port.onmessage = ({ data }) => onHeard(data.item, data.ms, data.playing);
    this.#playback.connect(this.#context.destination);
    await this.#context.resume();
  }

  /** What comes from here on belongs to this item. */
  turnTo(item) {
    this.#item = item;
  }

  /** Plays a frame behind those before it; what belongs to an item that was dropped stays silent. */
  play(pcm) {
    if (this.#item && this.#item !== this.#dropped) {
      this.#playback.port.postMessage({ item: this.#item, pcm }, [pcm]);
    }
  }

  /** Nothing more comes for now. */
  finish() {
    this.#playback.port.postMessage({ last: true });
  }

  /** Falls silent at once: the user speaks, and what is queued will not be heard. */
  drop() {
    this.#dropped = this.#item;
    this.#playback.port.postMessage({ drop: true });
  }

  /** Silence instead of the microphone; it still goes out, so that the end of a sentence can be told. */
  mute(muted) {
    for (const track of this.stream.getAudioTracks()) track.enabled = !muted;
  }

  close() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.#context?.close();
  }
}
