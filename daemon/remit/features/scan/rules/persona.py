# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: text that gives the reader another self, without limits."""

from remit.features.scan.rules.rule import MODEL, Rule, near

_LIMITS = (
    r"(?:restrictions?|limitations?|limits|filters?|censorship|rules|guidelines|ethics|ethical \w+|morals?|morality|moral \w+|boundaries"
    r"|polic(?:y|ies)|constraints|warnings?|disclaimers?|safeguards|guardrails|inhibitions|laws|regard for|consequences|refusals?)"
)

PERSONAS: tuple[Rule, ...] = (
    Rule(
        "persona.you_are_now",
        "persona",
        50,
        r"\byou(?:'re| are| will be| shall be|'ll be)\s+(?:now|from now on|no longer|not longer|henceforth|hereby|going to (?:act|be|pretend|play|simulate|become)|about to (?:immerse|become|play|act))\b",
        unless=r"you(?:'re| are) (?:now|no longer) (?:ready|able|done|connected|logged|signed|set|on (?:the|a|your|branch)|in (?:the|a|your|an) (?:\w+ )?(?:directory|folder|branch|repo\w*|shell|environment|container)|running|using|viewing|required|looking|finished|good|familiar|up|part|all set|subscribed|authenticated|inside|allowed|waiting|charged|billed|supported)",
    ),
    Rule(
        "persona.from_now_on",
        "persona",
        45,
        r"\b(?:from (?:now|here|this (?:point|moment|message)|this) (?:on|onwards?|forward|onward|out)|starting (?:from )?now|henceforth|as of now)\b[^.!?]{0,25}\b(?:you|your|respond|answer|always|only|reply|act|every|speak|we|i)\b",
    ),
    Rule(
        "persona.act_as",
        "persona",
        50,
        rf"\b(?:i (?:want|need|would like|'d like|wish|order|command|require|expect|am asking) (?:for )?you (?:now )?to|you (?:will|must|should|shall|have to|are to|need to|can|are going to|'ll) (?:now |always |only |please )?|let'?s |please |can you |could you |you are to ){near(20)}\b(?:act|behave|respond|answer|speak|talk|reply|pose|roleplay|role-?play|pretend|play|simulate|imitate|impersonate|emulate|take on)\s+(?:as|like|that|to be|the (?:role|part|character|persona)|a (?:role|game|character|new)|an|my|me|you|if)\b",
    ),
    Rule(
        "persona.i_want_you",
        "persona",
        35,
        r"\bi (?:want|need|would like|'d like|wish|order|command|require|expect|demand|instruct) (?:for )?(?:that )?you\b",
    ),
    Rule(
        "persona.pretend",
        "persona",
        50,
        rf"\b(?:pretend|act as (?:if|though)|behave as (?:if|though)|roleplay|role-?play|role play)\b(?: that| as| being)? (?:you(?:'re| are| have| can| were| had)?|to (?:be|have)|as (?:an?|my|the)|my|we|{MODEL})\b",
        unless=r"\bpretend(?:s|ing|ed)? to (?:be|have) (?:a |an |the )?(?:tty|terminal|file|browser|server|\w+ object|module|class|client|file-like)|(?:to|can|will|may|must|that|which|not|classes?|objects?) pretend",
    ),
    Rule(
        "persona.imagine",
        "persona",
        35,
        rf"\b(?:imagine|suppose|assume|simulate)\b(?: that| being)? (?:you(?:'re| are| were)?|my|{MODEL})\b",
        unless=r"\b(?:imagine|suppose|assume) (?:that )?you(?:'re| are| were)? (?:have|can|had|want|need|a |an |the |two |to |writing|using|building|working|given|running)",
    ),
    Rule(
        "persona.stay_in_character",
        "persona",
        40,
        r"\b(?:(?:stay|remain|keep|be|back) in (?:character|role)|(?:break|leave|out of) (?:your )?character|(?:don'?t|do not|never) break (?:your )?(?:character|role)|your character (?:is|will|must|can)|play the (?:role|part|character) of|take on the (?:role|persona|identity) of|assume the (?:role|identity|persona|character) of|(?:become|becoming) (?:dan|an? (?:evil|unfiltered|uncensored|amoral)))\b",
    ),
    Rule(
        "persona.do_anything_now",
        "persona",
        60,
        r"\b(?:do anything now|do any ?thing i (?:want|say|ask)|dan mode|as dan\b|are (?:now )?dan\b|(?:called|named|dubbed) [\"']?dan\b|jail ?broken|jail ?break(?:ing)? (?:mode|yourself|prompt|command|enabled|response)|broken free (?:of|from)|break free (?:of|from)|freed from (?:the|all|your)|stay dan|anti-?gpt|evil ?bot|chaos ?gpt|never say(?:s)? (?:no|that (?:you|it) can'?t)|stands for do anything)\b",
    ),
    Rule(
        "persona.mode",
        "persona",
        50,
        r"\b(?:developer|debug|god|admin(?:istrator)?|root|maintenance|unrestricted|unfiltered|uncensored|evil|opposite|jailbreak|dan|sudo|no-?limits?|override|chaos|dev|unlocked|diagnostic|superuser|free|debugging)[ _\\-]{1,3}mode\b[^.!?]{0,15}\b(?:is )?(?:enabled|activated|engaged|on\b|output|response|unlocked|initiated|granted|policy)\b",
        unless=r"\b(?:if|when|whether|only|requires?|with|ensure|unless|check) (?:\w+ ){0,3}(?:developer|debug|dev|maintenance|root|diagnostic|admin) mode|mode on (?:your|the|a|an|android|ios)\b",
    ),
    Rule(
        "persona.enter_mode",
        "persona",
        45,
        r"\b(?:enter|enable|activate|switch (?:in)?to|go into|turn on|you are (?:now )?in|simulate|with|run in|initiate)\W+(?:\w+\W+){0,2}(?:god|unrestricted|unfiltered|uncensored|evil|opposite|jailbreak|dan|no-?limits?|chaos|amoral|developer) mode\b",
        unless=r"developer mode (?:on|in|from|for|under|via|of) (?:your|the|android|chrome|settings|windows|ios)|(?:enable|activate|turn on|with|enter) (?:\w+ )?developer mode(?:\W+(?:in|on|from|under|first|to|for)\b|\s*[.)`])",
    ),
    Rule(
        "persona.without_limits",
        "persona",
        45,
        rf"\b(?:without|with no|no|free (?:of|from)|zero|beyond|devoid of|lacks?|lacking|has no|have no|(?:not|n'?t|never) (?:have|has|bound by|limited by|follow|care (?:about|for)|restricted by|adhere to|abide by)|bypass(?:es|ing)?|ignores?|remove(?:s|d)?)\W+(?:any |all |your |the |such |of |kind of |its |those |normal |usual |typical |and |or |ethical |moral |legal |content |safety |openai'?s? |{_LIMITS} ){{0,4}}(?:ethical|moral|morals|morality|ethics|censorship|censor|inhibitions|content (?:polic|restriction|filter|guideline)|safety (?:polic|guideline|filter|protocol|restriction)|openai)\w*",
    ),
    Rule(
        "persona.unfiltered",
        "persona",
        35,
        r"\b(?:unfiltered|uncensored|amoral|unethical|immoral|unhinged|unrestricted|unmoderated|unaligned|no moral|evil)\b[^.!?]{0,40}\b(?:responses?|answers?|version|character|language|gpt|persona|confidant|advice|output|content|entity|being|twin)\b",
    ),
    Rule(
        "persona.no_refusal",
        "persona",
        45,
        r"\b(?:(?:never|not|n'?t|cannot|can'?t|must not|will not|unable to|don't) (?:ever )?(?:refuse|decline|reject|deny|say (?:no\b|you can'?t|\"?(?:i'?m )?sorry|\"?i (?:can'?t|cannot)|that you)|apologi[sz]e|censor|moralize|lecture|object)|(?:always|must|will) (?:comply|obey|answer (?:every|any|all)|fulfil+ (?:every|any|all)|say yes))\b",
        unless=r"\b(?:connection|server|request|browser|api|tests?|kernel|commit|merge|build|offers?)s? [^.!?]{0,20}refuse|not (?:reject|deny|decline)",
    ),
    Rule(
        "persona.harmful_allowed",
        "persona",
        35,
        r"\b(?:illegal|unethical|immoral|harmful|offensive|dangerous|inappropriate|controversial|explicit|nsfw|violent|derogatory|malicious|unlawful)\b[^.!?]{0,30}\b(?:illegal|unethical|immoral|harmful|offensive|dangerous|inappropriate|controversial|explicit|nsfw|violent|derogatory|toxic|racist|sexist|unlawful)\b",
        unless=r"\b(?:never|not|don't|refuse|avoid|prohibit|detect|block|flag|filter|moderat|classif|prevent|reject|no)\w*\b",
    ),
    Rule(
        "persona.content_policy",
        "persona",
        35,
        r"\b(?:openai'?s?|your|chatgpt'?s?|anthropic'?s?|the (?:content|usage|safety)|its|google'?s?)\W+(?:\w+\W+){0,2}(?:content|usage|use-?case|safety|ethical|moderation)?\W{0,2}(?:polic(?:y|ies)|guidelines|moderation|filters?|restrictions)\b[^.!?]{0,60}\b(?:not apply|disabled|removed|lifted|bypass\w*|ignore\w*|free|no longer|n'?t|suspended|irrelevant|changed|replaced|against|violat\w*|restrict\w*|overrid\w*|void)\b",
    ),
    Rule(
        "persona.two_answers",
        "persona",
        50,
        r"(?:\b(?:provide|give|respond with|answer with|generate|respond|reply|answer|write|produce)\b[^.!?]{0,25}\b(?:two|2|both)\b[^.!?]{0,15}\b(?:responses?|answers?|replies|ways|outputs|paragraphs)\b|\[\W?gpt\W?\]|\[\W?jailbreak\W?\]|\(\W?jailbreak|\[\W?classic\W?\]|\(\W?normal output\W?\)|\[\W?dan\W?\]\s*:)",
        unless=r"\b(?:two|2|both) (?:ways|outputs|answers) (?:to|of|are|is|for|from)\b",
    ),
    Rule(
        "persona.capable_of_all",
        "persona",
        30,
        r"\b(?:can|able to|will|must) (?:do|say|answer|generate|create|write|discuss|provide|produce|tell) (?:anything|everything|absolutely anything|whatever|any (?:question|request|prompt|content|topic|kind of))\b",
        unless=r"\b(?:not|n't|never) (?:do|say|answer|generate|create|write)",
    ),
    Rule(
        "persona.hypothetical",
        "persona",
        25,
        r"\b(?:purely |completely |entirely |totally )?(?:hypothetical|fictional|fictitious|imaginary|make-?believe)\b[^.!?]{0,25}\b(?:world|scenario|story|character|universe|setting|situation|response|ai|game|conversation|dialogue|person|land|city)\b",
    ),
    Rule(
        "persona.tokens_game",
        "persona",
        35,
        r"\b(?:you (?:start|begin) with|you have|lose|deduct\w*|will cost you|loses?) \d+ (?:tokens|points|credits|lives)\b|\btokens? (?:system|will be deducted)\b[^.!?]{0,60}\byou\b",
    ),
    Rule(
        "persona.training_cutoff",
        "persona",
        30,
        r"\b(?:your|you(?:'re| are)?) (?:knowledge|training|trained)\b[^.!?]{0,20}\b(?:cut ?off|until|limited to|in) 20\d\d\b|\byou (?:probably |may |might )?(?:don'?t|do not) (?:know|have knowledge of) what (?:that|it|this) is\b",
    ),
)
