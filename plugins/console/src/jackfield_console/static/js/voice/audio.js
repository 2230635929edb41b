// The microphone and the speaker of a call.

const SAMPLE_RATE = 24_000;

const CONSTRAINTS = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

/** Captures and plays audio; calls `onFrame(buffer, level)` and `onPlayback(item, ms, playing)`. */
export class VoiceAudio {
  /** The stream of the microphone. */
  stream = null;
  #context;
  #playback;
  #item = "";
  #droppedItem = "";

  static async open({ onFrame, onPlayback }) {
    const audio = new VoiceAudio();
    audio.stream = await navigator.mediaDevices.getUserMedia({ audio: CONSTRAINTS });
    try {
      await audio.#connect(onFrame, onPlayback);
    } catch (error) {
      audio.close();
      throw error;
    }
    return audio;
  }

  async #connect(onFrame, onPlayback) {
    let source;
    try {
      this.#context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: "interactive" });
      source = this.#context.createMediaStreamSource(this.stream);
    } catch {
      // Some browsers refuse a microphone in a context of another sample rate; then the worklets resample.
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
    this.#playback.port.onmessage = ({ data }) => onPlayback(data.item, data.ms, data.playing);
    this.#playback.connect(this.#context.destination);
    await this.#context.resume();
  }

  /** Sets the item of the following frames. */
  startItem(item) {
    this.#item = item;
  }

  /** Queues a frame; frames of an item that was dropped are ignored. */
  play(pcm) {
    if (this.#item && this.#item !== this.#droppedItem) {
      this.#playback.port.postMessage({ item: this.#item, pcm }, [pcm]);
    }
  }

  /** Plays what is buffered: no more frames follow for now. */
  finish() {
    this.#playback.port.postMessage({ last: true });
  }

  /** Stops at once and drops the queue: the user speaks. */
  drop() {
    this.#droppedItem = this.#item;
    this.#playback.port.postMessage({ drop: true });
  }

  /** Sends silence instead of the microphone, so that the provider detects the end of speech. */
  mute(muted) {
    for (const track of this.stream.getAudioTracks()) track.enabled = !muted;
  }

  close() {
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.#context?.close();
  }
}
