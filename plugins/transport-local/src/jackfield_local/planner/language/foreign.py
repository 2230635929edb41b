"""Words that are not English: enough of them, and what was said is in another language."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from jackfield_local.language.words import words

_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|https?://\S+")


def _words(line: str) -> list[str]:
    return line.split()


_ENGLISH = frozenset(
    _words(
        "a about after all also am an and any are at be been but by can could did do does for from "
        "get give had has have he hello her him his how i if in is it its just let like make me more "
        "my need no not now of on one or our out please search see she should show so some tell than "
        "thank thanks that the their them then there these they thing this time to up us want was we "
        "were what when where which who why will with would yes you your"
    )
)


class Language(NamedTuple):
    """A language, and how one says in it that one does not speak it."""

    name: str
    apology: str
    common: frozenset[str]
    """Its commonest words, without those that English has too."""

    shared: frozenset[str]
    """Its commonest words that look like English ones, and speak for neither."""


def _language(name: str, apology: str, common: str) -> Language:
    found = frozenset(_words(common))
    return Language(name, apology, found - _ENGLISH, found & _ENGLISH)


_LANGUAGES = (
    _language(
        "German",
        "Ich verstehe leider nur Englisch.",
        "am der die das den dem des ein eine einen einem einer und oder aber nicht kein keine ich du er "
        "sie es wir ihr mich mir dich dir uns ist sind bin bist war haben habe hast hat kann kannst "
        "können könnt wird werde wie was wer wo wann warum welche welcher welches für mit von zu zum "
        "zur auf aus bei nach über bitte danke guten hallo heute morgen gestern mein meine meinen "
        "dein deine im vom auch noch nur",
    ),
    _language(
        "French",
        "Désolé, je ne comprends que l'anglais.",
        "le la les un une des du et ou mais ne pas je tu il elle nous vous ils est sont suis es ai as "
        "avez ont peux peut pouvez que qui quoi où quand comment pourquoi quel quelle combien pour "
        "avec dans sur au aux ce cette mon ma mes ton ta moi toi bonjour bonsoir merci salut "
        "aujourd'hui demain s'il plaît m'aider j'ai c'est qu'est l'heure d'un d'une",
    ),
    _language(
        "Spanish",
        "Lo siento, solo entiendo inglés.",
        "el la los las un una unos y o pero no yo tú él ella nosotros es son soy eres está están "
        "tengo tiene tienes puedo puedes puede que qué quién cuándo cuál dónde cómo cuánto cuántos "
        "para con por del al en mi mis tu hola gracias buenos buenas días hoy mañana hora favor",
    ),
    _language(
        "Italian",
        "Mi dispiace, capisco solo l'inglese.",
        "il lo la gli le un una uno e o ma non io tu lui lei noi voi sono sei è siamo ho hai ha puoi "
        "può posso che chi cosa dove quando come quanto quanti quante perché per con di del della dei "
        "nel nella mi ti ci mio mia ciao grazie buongiorno buonasera oggi domani sera c'è dov'è",
    ),
    _language(
        "Portuguese",
        "Desculpe, só entendo inglês.",
        "os uma uns e ou mas não eu tu ele ela nós você vocês é são sou está estão tenho tem posso "
        "pode que quem onde quando como quanto quantos porque para com de do da dos das em no na meu "
        "minha olá obrigado obrigada bom boa dia hoje amanhã",
    ),
    _language(
        "Dutch",
        "Sorry, ik begrijp alleen Engels.",
        "de het een en of maar niet geen ik jij je hij zij wij jullie ben bent zijn heb hebt heeft "
        "kan kun kunt wat wie waar wanneer waarom welke hoe voor met van naar op uit bij mijn jouw "
        "hallo dank bedankt alstublieft vandaag morgen gisteren goedemorgen",
    ),
)


def other_language(text: str) -> str | None:
    """That only English is understood, in the language of a text where it is known; nothing for English."""
    bare = _QUOTED.sub(" ", text)
    if _mostly_in_another_script(bare):
        return ""
    said = words(bare)
    best = max(_LANGUAGES, key=lambda each: sum(word in each.common for word in said))
    strange = sum(word in best.common for word in said)
    english = sum(word in _ENGLISH - best.shared for word in said)
    enough = strange > 1 or (strange == 1 and not bare.isascii())
    return best.apology if enough and strange > english and strange * 5 >= len(said) else None


def _mostly_in_another_script(text: str) -> bool:
    letters = [each for each in text if each.isalpha()]
    latin = sum("LATIN" in unicodedata.name(each, "") for each in letters)
    return bool(letters) and latin * 2 < len(letters)
