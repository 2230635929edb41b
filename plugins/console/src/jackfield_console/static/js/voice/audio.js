// The microphone and the speaker of a call.

const SAMPLE_RATE = 24_000;

const DEVICE_KEY = "jackfield.microphone";

const CONSTRAINTS = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

/** Captures and plays audio; calls `onFrame(buffer, level)` and `onPlayback(item, ms, playing)`. */
export class VoiceAudio {
  /** The stream of the microphone. */
  stream = null;
  #context;
  #source;
  #capture;
  #playback;
  #item = "";
  #droppedItem = "";

  static async open({ onFrame, onPlayback }) {
    const audio = new VoiceAudio();
    audio.stream = await openMicrophone(localStorage.getItem(DEVICE_KEY));
    try {
      await audio.#connect(onFrame, onPlayback);
    } catch (error) {
      audio.close();
      throw error;
    }
    return audio;
  }

  async #connect(onFrame, onPlayback) {
    try {
      this.#context = new AudioContext({ sampleRate: SAMPLE_RATE, latencyHint: "interactive" });
      this.#source = this.#context.createMediaStreamSource(this.stream);
    } catch {
      // Some browsers refuse a microphone in a context of another sample rate; then the worklets resample.
      await this.#context?.close();
      this.#context = new AudioContext({ latencyHint: "interactive" });
      this.#source = this.#context.createMediaStreamSource(this.stream);
    }
    const worklet = this.#context.audioWorklet;
    await Promise.all(["capture", "playback"].map((name) =>
      worklet.addModule(new URL(`./${name}-worklet.js`, import.meta.url))));
    this.#capture = new AudioWorkletNode(this.#context, "jf-capture", { numberOfOutputs: 0 });
    this.#capture.port.onmessage = ({ data }) => onFrame(data.frame, data.level);
    this.#source.connect(this.#capture);
    this.#playback = new AudioWorkletNode(this.#context, "jf-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.#playback.port.onmessage = ({ data }) => onPlayback(data.item, data.ms, data.playing);
    this.#playback.connect(this.#context.destination);
    await this.#context.resume();
  }

  /** The microphones to choose from, and which one is used; their names are known while one is in use. */
  async microphones() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    const used = this.stream.getAudioTracks()[0]?.getSettings().deviceId;
    return devices.filter(({ kind }) => kind === "audioinput").map(({ deviceId, label }) => ({ deviceId, label, used: deviceId === used }));
  }

  /** Uses another microphone, now and in later calls. */
  async useMicrophone(deviceId) {
    const stream = await openMicrophone(deviceId);
    const muted = this.stream.getAudioTracks().some((track) => !track.enabled);
    for (const track of this.stream.getTracks()) track.stop();
    this.stream = stream;
    this.mute(muted);
    this.#source.disconnect();
    this.#source = this.#context.createMediaStreamSource(stream);
    this.#source.connect(this.#capture);
    localStorage.setItem(DEVICE_KEY, deviceId);
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

/** Opens a microphone by its id; if it is not connected any more, the browser chooses another one. */
function openMicrophone(deviceId) {
  const choice = deviceId ? { deviceId: { ideal: deviceId } } : {};
  return navigator.mediaDevices.getUserMedia({ audio: { ...CONSTRAINTS, ...choice } });
}
