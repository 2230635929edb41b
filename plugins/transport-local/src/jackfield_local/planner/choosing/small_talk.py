"""What people say to an agent without wanting a tool."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Talk(Enum):
    """A kind of small talk."""

    GREETING = "greeting"
    WELLBEING = "wellbeing"
    THANKS = "thanks"
    PRAISE = "praise"
    ABILITY = "ability"
    IDENTITY = "identity"
    LANGUAGE = "language"
    AGREEMENT = "agreement"
    DOUBT = "doubt"
    HESITATION = "hesitation"
    DROPPING = "dropping"
    APOLOGY = "apology"
    FAREWELL = "farewell"
    AMUSEMENT = "amusement"
    CHAT = "chat"


PHRASES: Mapping[Talk, tuple[str, ...]] = {
    Talk.GREETING: (
        "hello",
        "hi",
        "hi there",
        "good afternoon",
        "good evening",
        "good day",
        "greetings",
        "nice to meet you",
        "good to see you",
        "long time no see",
        "welcome back",
        "hello, anybody home?",
    ),
    Talk.WELLBEING: (
        "how are you?",
        "how are you doing today?",
        "how do you feel?",
        "what's up?",
        "are you well?",
        "how is your day?",
        "what's new?",
    ),
    Talk.THANKS: (
        "thank you",
        "thanks",
        "many thanks, that was helpful",
        "I appreciate it",
        "thank you very much",
        "that was very kind",
        "thanks for your help",
        "cheers",
        "much obliged",
    ),
    Talk.PRAISE: (
        "well done",
        "you are good at this",
        "perfect",
        "great work",
        "I like you",
        "that is awesome",
        "you are the best",
        "that was fast",
        "impressive",
        "you are so helpful",
    ),
    Talk.ABILITY: (
        "what can you do?",
        "how can you help me?",
        "what are your abilities?",
        "which tools do you have?",
        "help",
        "what should I ask you?",
        "what kind of things can I ask?",
        "what do you know how to do?",
        "how does this work?",
        "what are you good for?",
    ),
    Talk.IDENTITY: (
        "who are you?",
        "are you a bot or a person?",
        "what are you?",
        "who made you?",
        "do you have a name?",
        "are you an artificial intelligence?",
        "am I talking to a real person?",
        "which model are you?",
        "is this a machine?",
        "is this a test?",
        "how old are you?",
        "where do you live?",
        "are you smart?",
    ),
    Talk.LANGUAGE: (
        "do you speak Spanish?",
        "which languages do you understand?",
        "can we talk in French?",
        "can you understand German?",
        "do you know Italian?",
        "I don't speak English",
    ),
    Talk.AGREEMENT: (
        "ok",
        "okay, fine",
        "I see",
        "got it",
        "alright",
        "understood",
        "that makes sense",
        "yes",
        "no",
        "no thanks",
        "sounds good",
        "sure",
        "fine by me",
        "you are right",
        "good to know",
    ),
    Talk.DOUBT: (
        "why?",
        "why is that?",
        "how come?",
        "are you sure?",
        "what do you mean?",
        "how do you know that?",
        "that is wrong",
        "you are wrong",
        "that is not what I asked for",
        "this does not work",
        "you misunderstood me",
        "I don't understand",
        "I don't get it",
    ),
    Talk.HESITATION: ("hmm", "er, wait", "let me think", "one moment", "well, I am not sure"),
    Talk.DROPPING: (
        "forget it",
        "never mind",
        "cancel that",
        "leave it",
        "I changed my mind",
        "skip it",
        "not now",
    ),
    Talk.APOLOGY: ("sorry", "I apologise", "my bad", "excuse me", "that was my fault", "oops, a typo"),
    Talk.FAREWELL: (
        "goodbye",
        "bye",
        "see you later",
        "good night",
        "have a nice day",
        "that is all",
        "until next time",
        "I have to go now",
    ),
    Talk.AMUSEMENT: (
        "haha",
        "lol",
        "that is funny",
        "wow",
        "that is interesting",
        "you made me laugh",
        "cool",
        "nice",
        "what a day",
    ),
    Talk.CHAT: (
        "tell me a joke",
        "tell me a story",
        "write me a poem",
        "make up a rhyme",
        "let's play a game",
        "do you have feelings?",
        "what is your favourite colour?",
        "sing me a song",
        "I feel sad today",
        "I am so tired",
        "I am bored",
        "I had a hard day",
        "do you like music?",
        "how is the weather?",
        "what do you think about life?",
        "are you listening?",
        "are you still there?",
        "happy birthday",
        "do you love me?",
        "what is the meaning of life?",
    ),
}
