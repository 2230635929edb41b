"""What every connection of a conversation begins with."""

from __future__ import annotations

from jackfield.registry.registry import Registry
from jackfield.session.session import Session
from jackfield.transport.protocol import Opening, Transport, Utterance, VoiceSettings

from jackfield_sessions.memory import Memory


class Openings:
    """Makes the opening of each connection: the same instructions and tools, and what was said by then."""

    def __init__(
        self,
        registry: Registry,
        session: Session,
        transport: Transport,
        memory: Memory,
        *,
        instructions: str,
        voice: VoiceSettings,
        answer_tokens: int = 0,
        forms: bool = False,
    ) -> None:
        self._memory = memory
        self._instructions = instructions
        self._mode = session.mode
        self._declarations = registry.provider_schemas(transport.adapter(session.mode), session.mode)
        self._guides = {tool.id: tool.frozen.documentation for tool in registry.offered(session.mode)}
        in_text = {tool.id: tool for tool in registry.offered("text")}
        self._text_only = {
            name: tool.frozen.documentation
            for name, tool in in_text.items()
            if session.mode == "voice" and name not in self._guides
        }
        offered = {**in_text, **{tool.id: tool for tool in registry.offered(session.mode)}}
        self._writers = frozenset(name for name, tool in offered.items() if not tool.reads)
        self._confirmed = frozenset(
            name for name, tool in offered.items() if tool.manifest.requires_confirmation is True
        )
        # A voice session is asked in words, on whatever screen.
        self._can_show_forms = session.mode == "text"
        self.forms = forms
        """Whether the client that is attached shows forms; it counts for the next connection."""
        self._voice = voice
        self._answer_tokens = answer_tokens

    def __call__(self, said: tuple[Utterance, ...], resume: str | None) -> Opening:
        """The opening of a connection that takes up the provider's own session, or begins a new one."""
        instructions, summary = self._instructions, self._memory.summary
        if summary:
            instructions += f"\n\nWhat was said earlier in this conversation, in short:\n{summary}"
        return Opening(
            self._mode,
            instructions,
            self._declarations,
            guides=self._guides,
            history=() if resume else said,
            resume=resume,
            voice=self._voice,
            answer_tokens=self._answer_tokens,
            writers=self._writers,
            confirmed=self._confirmed,
            text_only=self._text_only,
            forms=self.forms and self._can_show_forms,
        )
