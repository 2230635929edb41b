// Plays the assistant's audio without gaps, and reports how much of each item was played.

import { Resampler } from "./resampler.js";

const RATE = 24_000;

/** The samples to buffer before playback starts, against late frames: 40 milliseconds. */
const HEAD_START = 0.04;

/** How often playback is reported. */
const REPORT = 0.15;

class Playback extends AudioWorkletProcessor {
  #resampler = new Resampler(RATE, sampleRate);
  #queue = [];
  #waiting = 0;
  #playing = false;
  #since = 0;
  #item = "";
  #played = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => (data.drop ? this.#drop() : this.#add(data));
  }

  process(_, [output]) {
    const out = output[0];
    if (!this.#playing && this.#waiting >= HEAD_START * sampleRate) this.#playing = true;
    if (this.#playing) this.#fill(out);
    for (const channel of output.slice(1)) channel.set(out);
    return true;
  }

  #add({ item, pcm, last }) {
    if (last) {
      // No more frames follow for now: play what is buffered, however little.
      if (this.#waiting) this.#playing = true;
      return;
    }
    const samples = Float32Array.from(new Int16Array(pcm), (value) => value / 32_768);
    const ready = this.#resampler.take(samples);
    this.#queue.push({ item, samples: ready, at: 0 });
    this.#waiting += ready.length;
  }

  #fill(out) {
    let place = 0;
    while (place < out.length && this.#queue.length) {
      const first = this.#queue[0];
      if (first.item !== this.#item) this.#turnTo(first.item);
      const count = Math.min(out.length - place, first.samples.length - first.at);
      out.set(first.samples.subarray(first.at, first.at + count), place);
      first.at += count;
      place += count;
      this.#played += count;
      if (first.at === first.samples.length) this.#queue.shift();
    }
    this.#waiting -= place;
    this.#since += place;
    if (!this.#queue.length) this.#rest();
    else if (this.#since >= REPORT * sampleRate) this.#report();
  }

  #turnTo(item) {
    if (this.#item) this.#report();
    this.#item = item;
    this.#played = 0;
  }

  #rest() {
    this.#playing = false;
    this.#report();
  }

  #drop() {
    this.#queue = [];
    this.#waiting = 0;
    this.#rest();
  }

  #report() {
    this.#since = 0;
    const ms = Math.floor((1000 * this.#played) / sampleRate);
    this.port.postMessage({ item: this.#item, ms, playing: this.#playing });
  }
}

registerProcessor("jf-playback", Playback);
