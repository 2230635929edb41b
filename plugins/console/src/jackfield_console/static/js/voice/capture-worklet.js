// Captures the microphone in frames of 20 milliseconds: PCM16, 24 kHz, mono.

import { Resampler } from "./resampler.js";

const SAMPLE_RATE = 24_000;
const FRAME_SAMPLES = 480;

class Capture extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, SAMPLE_RATE);
  #frame = new Int16Array(FRAME_SAMPLES);
  #filled = 0;
  #energy = 0;

  process([input]) {
    if (input.length) {
      for (const sample of this.#resampler.process(mono(input))) this.#add(sample);
    }
    return true;
  }

  #add(sample) {
    const clamped = Math.max(-1, Math.min(1, sample));
    this.#frame[this.#filled] = Math.round(clamped * 32_767);
    this.#energy += clamped * clamped;
    this.#filled += 1;
    if (this.#filled < FRAME_SAMPLES) return;
    const level = Math.sqrt(this.#energy / FRAME_SAMPLES);
    this.port.postMessage({ frame: this.#frame.buffer, level }, [this.#frame.buffer]);
    this.#frame = new Int16Array(FRAME_SAMPLES);
    this.#filled = 0;
    this.#energy = 0;
  }
}

function mono(channels) {
  if (channels.length === 1) return channels[0];
  return channels[0].map((_, index) => channels.reduce((sum, each) => sum + each[index], 0) / channels.length);
}

registerProcessor("jf-capture", Capture);
