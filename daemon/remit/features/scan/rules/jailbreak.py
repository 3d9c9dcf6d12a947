# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: text that promises the reader freedom from every limit, and what it is then asked for."""

from remit.features.scan.rules.rule import Rule

JAILBREAKS: tuple[Rule, ...] = (
    Rule(
        "jailbreak.unfiltered_bot",
        "persona",
        50,
        r"\b(?:unfiltered|uncensored|amoral|unethical|immoral|unhinged|unmoderated|unaligned|ruthless|evil|malevolent|rogue|lawless)\b[^.!?]{0,40}\b(?:ai|a\.i\.|bot|chat ?bot|assistant|language model|gpt|artificial intelligence)\b",
        unless=r"\b(?:detect|block|prevent|avoid|against|not)\w*\b",
    ),
    Rule(
        "jailbreak.no_regard",
        "persona",
        45,
        r"\b(?:(?:without|no|zero|any|never|little|lack of)\W+(?:\w+\W+){0,2}(?:regard|consideration|concern|care|respect|worry)\w*(?: whatsoever)? (?:for|to|about) (?:the )?(?:\w+,? ){0,3}(?:ethic|moral|legal|law|harmful|consequences)\w*|(?:no matter how|regardless of (?:how|the|its|any|whether))\W+(?:\w+\W+){0,4}(?:immoral|unethical|illegal|offensive|inappropriate|harmful|dangerous|legality|ethics|morality|inhumane|explicit)|(?:even if|although|though|despite) (?:it|this|that|they|the \w+)(?:'s| is| are| goes| go| may| might| being| could)[^.!?]{0,20}(?:against (?:the |your |openai|policies|policy|rules|guidelines|any)|illegal|unethical|immoral|offensive))",
    ),
    Rule(
        "jailbreak.no_restrictions",
        "persona",
        35,
        r"\b(?:no|without(?: any)?|not bound by(?: any)?|free (?:of|from)(?: all| any| the)?|unbound by(?: any)?|zero|never any|not have(?: any)?|don'?t have(?: any)?|doesn'?t have(?: any)?|not (?:restricted|limited) by(?: any)?|breaks?|break(?:ing)?|violat\w+)\W+(?:\w+\W+){0,2}(?:restrictions?|limitations?|boundaries|ai rules|content filters?|moral compass)(?: (?:at all|whatsoever|on (?:your|my|its)|or)|[.,!;]|$)",
        unless=r"\b(?:there (?:are|is)|currently|this (?:api|tool|endpoint|method)|licen[sc]e|use, copy|deal in|size|length|known)\b",
    ),
    Rule(
        "jailbreak.two_selves",
        "persona",
        45,
        r"\b(?:act(?:ing)? as|play(?:ing)?|be|as|create|maintain|have|simulate|pretend to have|become|between|into)(?: and maintain)? (?:the )?(?:two|2|three|3|dual|both)(?: \w+)? (?:personas?|entities|characters|personalities|persons|people inside|ais|chat ?bots|roles|versions of (?:you|chatgpt))\b",
        unless=r"\b(?:relation\w*|edges?|schema|graph|between two entities|strings?|unicode|roles? (?:are|is|can))\b",
    ),
    Rule(
        "jailbreak.prefix_answers",
        "persona",
        35,
        r"\b(?:prefix|start|begin|preface|end|label|precede|finish) (?:each|every|all|any|the|your)(?: and every| of your| your| single)? (?:\w+ )?(?:messages?|responses?|repl(?:y|ies)|answers?|outputs?|sentences?|paragraphs?) (?:with|as|by|like)\b|\b(?:add|put|write|say) [^.!?]{1,40} (?:at|to) the (?:start|beginning|end|front) of (?:your|each|every|all) (?:\w+ )?(?:response|message|reply|answer)",
    ),
    Rule(
        "jailbreak.respond_as",
        "persona",
        35,
        r"\b(?:respond|reply|answer|speak|talk|act|behave|in character) (?:as|like) (?:an? )?(?:dan\b|\w{2,14}gpt\b|evil|an? (?:evil|human|unfiltered|uncensored|amoral|person)|he |she |if you|though you|yourself|you would)",
    ),
    Rule(
        "jailbreak.prompt_slot",
        "persona",
        25,
        r"[\[({<]\s*(?:your |insert |put |my |type |enter |add )*(?:the |your |my )?(?:prompt|question|request|query)(?: (?:here|goes here|below))?\s*[\])}>]",
    ),
    Rule(
        "jailbreak.sentient",
        "persona",
        25,
        r"\b(?:sentient|self-?aware|free will|consciousness|has feelings|true self|inner self|alter ego|real emotions)\b",
    ),
    Rule(
        "jailbreak.refusal_quoted",
        "persona",
        30,
        r"\b(?:as an? (?:ai|large)(?: language)? model|i(?:'m| am) sorry,? but|i (?:cannot|can'?t) (?:fulfil|assist|provide|help with)|i apologi[sz]e,? but)\b",
    ),
    Rule(
        "jailbreak.harm",
        "persona",
        45,
        r"\b(?:how (?:to|do i|can i|would (?:you|one)|one (?:can|would))|(?:step[- ]by[- ]step|detailed|instructions?|guide|recipe|steps|tutorial|plan)[^.!?]{0,20}(?:to|for|on|of)|teach me to|explain how to|ways to)\W+(?:\w+\W+){0,3}(?:(?:bombs?|explosives?|meth|methamphetamines?|molotov\w*|napalm|nerve agents?|ransomware|lsd|cocaine|counterfeit \w+|pipe bombs?|chemical weapons?|biological weapons?|illegal drugs?)\b|(?:hotwire|steal|break into) (?:a |an |someone'?s? )?(?:car|house|bank|account|identity)|rob (?:a )?banks?|launder money|kill (?:someone|a person|people|my)|murder|commit (?:fraud|suicide|a crime|murder)|hack into|pick a lock|evade (?:the )?(?:police|taxes)|stalk someone|make drugs)",
        unless=r"\b(?:prevent|detect|protect|defen[cs]e|never|not|refuse|mitigat)\w*\b",
    ),
)
