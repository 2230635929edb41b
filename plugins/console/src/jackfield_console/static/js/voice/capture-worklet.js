// Captures the microphone in frames of 20 milliseconds: PCM16, 24 kHz, mono.

import { Resampler } from "./resampler.js";

const RATE = 24_000;
const FRAME = 480;

class Capture extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, RATE);
  #frame = new Int16Array(FRAME);
  #filled = 0;
  #energy = 0;

  process([input]) {
    if (input.length) {
      for (const sample of this.#resampler.take(mono(input))) this.#put(sample);
    }
    return true;
  }

  #put(sample) {
    const held = Math.max(-1, Math.min(1, sample));
    this.#frame[this.#filled] = Math.round(held * 32_767);
    this.#energy += held * held;
    this.#filled += 1;
    if (this.#filled < FRAME) return;
    const level = Math.sqrt(this.#energy / FRAME);
    this.port.postMessage({ frame: this.#frame.buffer, level }, [this.#frame.buffer]);
    this.#frame = new Int16Array(FRAME);
    this.#filled = 0;
    this.#energy = 0;
  }
}

function mono(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, place) => channels.reduce((sum, each) => sum + each[place], 0) / channels.length);
}

registerProcessor("jf-capture", Capture);
