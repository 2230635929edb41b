// A WebRTC call from the browser to the provider; the host attaches to it for tools and transcripts.

import { element } from "../dom.js";

/** One connection to the provider; `onLost` is called when it breaks. */
export class WebRtcPeer {
  #api;
  #peer = new RTCPeerConnection();
  #speaker = element("audio", { autoplay: true });

  constructor(api, onLost) {
    this.#api = api;
    this.#peer.addEventListener("track", ({ streams }) => {
      this.#speaker.srcObject = streams[0];
    });
    this.#peer.addEventListener("connectionstatechange", () => {
      if (this.#peer.connectionState === "failed") onLost();
    });
  }

  /** Connects the microphone; returns the token of the session. */
  async call(stream) {
    const session = await this.#api.get("session", { session: null });
    for (const track of stream.getAudioTracks()) this.#peer.addTrack(track, stream);
    await this.#peer.setLocalDescription(await this.#peer.createOffer());
    const offer = { sdp: this.#peer.localDescription.sdp, session_id: session.session_id };
    const { sdp } = await this.#api.post("sdp", offer, { session: session.token });
    await this.#peer.setRemoteDescription({ type: "answer", sdp });
    return session.token;
  }

  /** Sends another microphone. */
  async replace(stream) {
    const [track] = stream.getAudioTracks();
    await this.#peer.getSenders().find((sender) => sender.track?.kind === "audio")?.replaceTrack(track);
  }

  close() {
    this.#peer.close();
    this.#speaker.srcObject = null;
  }
}
