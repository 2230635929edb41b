// Plays the assistant's audio without gaps, and reports how much of each item was played.

import { Resampler } from "./resampler.js";

const SAMPLE_RATE = 24_000;

/** How much is buffered before playback starts, in case frames are late. */
const HEAD_START_SECONDS = 0.04;

/** How often playback is reported. */
const REPORT_SECONDS = 0.15;

class Playback extends AudioWorkletProcessor {
  #resampler = new Resampler(SAMPLE_RATE, sampleRate);
  #queue = [];
  #buffered = 0;
  #playing = false;
  #sinceReport = 0;
  #item = "";
  #played = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => (data.drop ? this.#drop() : this.#add(data));
  }

  process(_, [output]) {
    const out = output[0];
    if (!this.#playing && this.#buffered >= HEAD_START_SECONDS * sampleRate) this.#playing = true;
    if (this.#playing) this.#fill(out);
    for (const channel of output.slice(1)) channel.set(out);
    return true;
  }

  #add({ item, pcm, last }) {
    if (last) {
      // No more frames follow for now: play what is buffered, however little.
      if (this.#buffered) this.#playing = true;
      return;
    }
    const samples = Float32Array.from(new Int16Array(pcm), (value) => value / 32_768);
    const resampled = this.#resampler.process(samples);
    this.#queue.push({ item, samples: resampled, offset: 0 });
    this.#buffered += resampled.length;
  }

  #fill(out) {
    let index = 0;
    while (index < out.length && this.#queue.length) {
      const first = this.#queue[0];
      if (first.item !== this.#item) this.#startItem(first.item);
      const count = Math.min(out.length - index, first.samples.length - first.offset);
      out.set(first.samples.subarray(first.offset, first.offset + count), index);
      first.offset += count;
      index += count;
      this.#played += count;
      if (first.offset === first.samples.length) this.#queue.shift();
    }
    this.#buffered -= index;
    this.#sinceReport += index;
    if (!this.#queue.length) this.#stop();
    else if (this.#sinceReport >= REPORT_SECONDS * sampleRate) this.#report();
  }

  #startItem(item) {
    if (this.#item) this.#report();
    this.#item = item;
    this.#played = 0;
  }

  #stop() {
    this.#playing = false;
    this.#report();
  }

  #drop() {
    this.#queue = [];
    this.#buffered = 0;
    this.#stop();
  }

  #report() {
    this.#sinceReport = 0;
    const ms = Math.floor((1000 * this.#played) / sampleRate);
    this.port.postMessage({ item: this.#item, ms, playing: this.#playing });
  }
}

registerProcessor("jf-playback", Playback);
