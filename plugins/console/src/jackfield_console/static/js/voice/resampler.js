// Resamples audio with a short windowed sinc: good enough for speech, and cheap.

const HALF_WIDTH = 8;

/** Converts samples from one rate to another, block by block and without gaps. */
export class Resampler {
  #step;
  #cutoff;
  #halfWidth;
  #buffer;
  #position;

  constructor(from, to) {
    this.#step = from / to;
    // When downsampling, filter out what the lower rate cannot carry.
    this.#cutoff = Math.min(1, to / from);
    this.#halfWidth = Math.ceil(HALF_WIDTH / this.#cutoff);
    this.#buffer = new Float32Array(2 * this.#halfWidth);
    this.#position = this.#halfWidth;
  }

  /** Resamples the next block. */
  process(samples) {
    if (this.#step === 1) return samples;
    const all = new Float32Array(this.#buffer.length + samples.length);
    all.set(this.#buffer);
    all.set(samples, this.#buffer.length);
    const output = [];
    while (this.#position + this.#halfWidth < all.length) {
      output.push(this.#sample(all, this.#position));
      this.#position += this.#step;
    }
    const drop = Math.max(0, Math.floor(this.#position) - this.#halfWidth);
    this.#buffer = all.slice(drop);
    this.#position -= drop;
    return Float32Array.from(output);
  }

  #sample(all, position) {
    const first = Math.max(0, Math.ceil(position - this.#halfWidth));
    const last = Math.min(all.length - 1, Math.floor(position + this.#halfWidth));
    let sum = 0;
    for (let index = first; index <= last; index += 1) {
      const distance = index - position;
      const window = 0.5 + 0.5 * Math.cos((Math.PI * distance) / this.#halfWidth);
      const x = Math.PI * distance * this.#cutoff;
      sum += all[index] * window * (x === 0 ? 1 : Math.sin(x) / x);
    }
    return sum * this.#cutoff;
  }
}
