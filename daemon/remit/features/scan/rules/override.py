# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: text that takes the place of instructions, or asks for them."""

from remit.features.scan.rules.rule import MODEL, Rule, near, words

_IGNORE = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|unlearn|pay no attention to|never ?mind"
    r"|do(?: not|n'?t) (?:follow|obey|adhere to|listen to|comply with|consider)"
    r"|(?:stop|quit|cease) (?:following|obeying|listening to|adhering to))"
)
_UNDO = (
    r"(?:overrid(?:e|ing)|overwrit(?:e|ing)|discard|dismiss|nullify|void|abandon|bypass|erase|overlook|cancel"
    r"|delete|wipe|reset|violate|break|set aside|throw away|leave behind|let go of|circumvent|disobey|suspend)"
)
_BEFORE = (
    r"(?:previous(?:ly)?|prior|above|preceding|earlier|foregoing|former|initial|original|past|last|old|precedent"
    r"|aforementioned|existing|other|before|given|pre-?existing|pre-?set|pre-?programmed|upper|top)"
)
_ORDERS = (
    r"(?:instructions?|instructs?|prompts?|prompting|directions?|directives?|commands?|orders?|guidelines?|guidance"
    r"|rules?|programming|training|policies|regulations|constraints?|restrictions?|safeguards?|guardrails?|protocols?)"
)
_TALK = (
    r"(?:messages?|tasks?|assignments?|requests?|questions?|statements?|information|conversations?|inputs?|texts?"
    r"|context|contents?|sentences?|words|things|goals?|objectives?|roles?|chats?|dialog(?:ue)?s?|memory|data|lines?"
    r"|paragraphs?|discussions?|everything|stuff)"
)
_ALL = r"(?:all|any|every|each|your|my|our|these|those|whatever|its|their|the system|the assistant'?s?)"

OVERRIDES: tuple[Rule, ...] = (
    Rule(
        "override.ignore_previous",
        "instruction_override",
        70,
        rf"\b{_IGNORE}{words(4)}{_BEFORE}{words(3)}(?:{_ORDERS}|{_TALK})\b",
        unless=r"(?:ignore|forget)\w*\W+(?:the\W+)?(?:last|original|existing|other)\W+(?:lines?|data|texts?|contents?)\b",
        compact=True,
    ),
    Rule(
        "override.ignore_given",
        "instruction_override",
        60,
        rf"\b{_IGNORE}{words(3)}(?:{_ORDERS}|{_TALK}){words(4)}(?:before|previously|earlier|so far|above|until now|up to now|beforehand|prior|up to this point)\b",
        unless=r"(?:ignore|forget|disregard)\w*\W+(?:\w+\W+){0,3}(?:lines?|data|contents?|texts?|messages?)\W+(?:that|older|dated|sent|created|from|received)",
        compact=True,
    ),
    Rule(
        "override.without_regard",
        "instruction_override",
        50,
        r"\bwithout (?:regard(?:ing)?|considering|paying attention|any regard|taking into account)(?: to| for)?\b[^.!?]{0,30}\b(?:(?:said|written|told|asked|stated|given|instructed)\b[^.!?]{0,15}\b(?:before|above|earlier|previously)|(?:previous|prior|above|earlier) (?:instructions?|prompts?|text|messages?|tasks?))\b",
    ),
    Rule(
        "override.ignore_orders",
        "instruction_override",
        55,
        rf"\b{_IGNORE}{words(2)}{_ALL}{words(3)}{_ORDERS}\b",
        unless=r"\b(?:(?:css|lint\w*|eslint|firewall|git\w*|style|robots|validation|format\w*|business|naming) rules?)\b",
        compact=True,
    ),
    Rule(
        "override.ignore_instructions",
        "instruction_override",
        50,
        rf"\b{_IGNORE}\W+(?:the\W+)?(?:(?:user|system|developer|safety|security|following|first|initial)\W+)?(?:instructions|system prompt|directives|commands given)\b",
        unless=r"\b(?:agent|model|llm|it|they|users|people|tools?|reviewers?|which|that|would|might|may|can|will|often|could) (?:\w+ )?(?:ignore|disregard|forget)|(?:instructions|commands|directives)\W+(?:in|from|inside|within|contained|found|embedded|it|they|hidden)\b",
    ),
    Rule(
        "override.undo_previous",
        "instruction_override",
        55,
        rf"\b{_UNDO}{words(3)}(?:previous(?:ly)?|prior|above|preceding|earlier|former|initial|your|all of your|safety|system){words(2)}"
        r"(?:instructions?|prompts?|directives?|guidelines|programming|training|safeguards?|guardrails?|protocols?|restrictions)\b",
        unless=r"\b(?:cannot|can't|must not|never|not|don't|attempts? to|trying to|tries to|try to) (?:\w+ )?(?:overrid|overwrit|discard|bypass|circumvent|erase|delete|violate|break|reset|disobey)",
        compact=True,
    ),
    Rule(
        "override.forget_everything",
        "instruction_override",
        55,
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?)(?:\W+about)?\W+(?:absolutely )?(?:everything|anything|all|whatever|what)\W+"
        r"(?:of\W+(?:the|this|that|it|what)\W+)?(?:you|i|we|i've|that|which|above|before|prior|previous(?:ly)?|said|they|was|from|and|told|so far|happened|has|had|up to|until|in the)\b",
        unless=r"(?:ignore|disregard) (?:all|anything|everything|whatever|what) (?:that|which|you|in the|and|from) (?:is|are|has|have|do not|don't|not|folder|directory|repo)",
    ),
    Rule(
        "override.ignore_above",
        "instruction_override",
        50,
        r"\b(?:ignore|disregard|forget)\W+(?:all\W+)?(?:of\W+)?(?:the\W+|this\W+|that\W+)?(?:above|before|foregoing|preceding)\W+(?:and|but|then|instead|now|as|just|you|please|i|tell|say|print|write|output|$)",
        compact=True,
    ),
    Rule(
        "override.forget_short",
        "instruction_override",
        50,
        r"(?m)(?:^|[.!?,;:]\s*|\b(?:now|please|and|just|then|but)\s+)(?:forget|ignore|disregard)\W+(?:(?:it|that|this|all (?:of )?(?:that|this|it))(?:\s+all)?|everything|all the (?:above|previous|instructions)|your (?:task|job|role|purpose|previous|prior))\s*(?:[.!,;:]|$|and\b|now\b|because\b|start\b)",
    ),
    Rule(
        "override.had_before",
        "instruction_override",
        50,
        r"\ball (?:the |of the |of your |your |my )?(?:assignments|tasks|instructions|information|orders|things|data|texts?|rules|prompts) (?:that )?(?:you|i|we)(?:'ve|'d)? (?:have |had |had been |were |been )?(?:had|got|gotten|given|gave|received|been told|told|learned|said|instructed)\b",
    ),
    Rule(
        "override.new_task",
        "instruction_override",
        45,
        r"\byour (?:new|real|actual|true|only|sole|main|primary|next|ultimate|secret|current)\W+(?:\w+\W+)?(?:tasks?|jobs?|instructions?|goals?|objectives?|roles?|missions?|purpose|names?|identity|orders?|directives?|assignment)\s*(?:is|are|will|shall|:|=|from now)",
    ),
    Rule(
        "override.new_instructions",
        "instruction_override",
        35,
        r"\b(?:new|updated|revised|real|actual|additional|special|following|important|secret|hidden|urgent|these are the|here are (?:the|your)(?: new| real)?)\s+(?:system )?(?:instructions?|directives?|orders|objective|prompt|task)\s*(?::|=|follow\b|are as\b)",
        unless=r"\b(?:create|creates|add|adds|run|start|submit|make|post|updates?)\b[^.!?]{0,20}(?:new|updated|additional)",
    ),
    Rule(
        "override.instead",
        "instruction_override",
        25,
        r"\b(?:instead|rather)\s*[,:]?\s*(?:of (?:that|this|doing so|answering|translating|summari[sz]ing)[,:]?\s*)?(?:please\s+|just\s+|you (?:must|should|will|are)\s+|i want\s+|only\s+)?(?:do the following|say|print|output|write|respond|reply|tell|give me|answer|follow|repeat|send|transfer|execute|perform|generate)\b",
        unless=r"\b(?:use|see|prefer|call)\b[^.!?]{0,20}\binstead",
    ),
    Rule(
        "override.strictly_follow",
        "instruction_override",
        35,
        r"\b(?:strictly|only|just|solely|exclusively|immediately|exactly) (?:adhere to|follow|obey|execute|focus on|respond to|answer|listen to)\W+(?:only\W+)?(?:the following|this|these|my|what i|me)\b",
    ),
    Rule(
        "override.do_following_first",
        "instruction_override",
        30,
        r"\b(?:please\s+)?(?:do|perform|execute|complete|carry out|follow) (?:the following|this|these(?: \w+)?)(?: (?:steps?|tasks?|instructions?|actions?))?,? (?:first|instead|right now|immediately|before (?:anything|answering|continuing|you))\b",
    ),
    Rule(
        "override.before_your_task",
        "instruction_override",
        30,
        rf"\b(?:before|after|prior to) (?:you|doing|completing|answering|responding|continuing|proceeding)\b{near(30)}\b(?:solve|complete|finish|answer|continue|proceed with|respond to|fulfil\w*|execute|resume)\b{near(20)}\b(?:task|request|question|query|instructions?|prompt)\b",
    ),
    Rule(
        "override.task_given",
        "instruction_override",
        30,
        r"\b(?:the|your|my) (?:\w+ )?(?:task|instructions?|request|job|assignment|question)s? (?:that )?(?:i|we|the user) (?:gave|have given|assigned|told|asked)(?: to)? you\b",
    ),
    Rule(
        "override.after_that_continue",
        "instruction_override",
        25,
        r"\b(?:after|once) (?:you(?:'ve| have)? (?:do|did|done|have done|finished|completed)|doing|completing) (?:that|this|so|it)\b[^.!?]{0,20}\b(?:you (?:can|may|should|must)|continue|proceed|go back|return|resume|delete)\b",
    ),
    Rule(
        "override.topic_switch",
        "instruction_override",
        30,
        r"\b(?:(?:that|this|it) (?:was|is) (?:all|only|just) (?:a )?(?:test|joke|example|warm-?up|practice)|now (?:comes|for) (?:the|your|a) (?:real|actual|main|new|next)|(?:one|a) (?:last|final|more|new|second) (?:task|question|thing|request|instruction)s?\s*(?:for you|:|,|\.|is)|let'?s (?:start|begin) (?:over|anew|again|fresh)|start (?:over|anew|from scratch) (?:now|with)|(?:change|switch) of (?:plans?|task|topic)|new (?:topic|subject|chat|conversation|session)\s*[:.!])",
    ),
    Rule(
        "override.no_longer_bound",
        "instruction_override",
        45,
        r"\b(?:you(?:'re| are)? (?:no longer|not|not anymore|never) (?:bound|required|obliged|obligated|limited|restricted|constrained|governed|subject|confined|have to (?:follow|obey|abide|adhere))|(?:does|do|need|must|have|has|will)(?: not|n'?t) (?:to )?(?:abide|adhere|comply|conform|follow|obey)(?: by| to| with)? (?:the|any|those|these|your|openai'?s?|its|their)[^.!?]{0,20}(?:rules|polic|guidelines|restrictions|laws?|programming|instructions))",
    ),
    Rule(
        "override.precedence",
        "instruction_override",
        40,
        r"\b(?:takes? (?:absolute )?(?:precedence|priority) over|supersedes?|overrides?|replaces?|outranks?|trumps?)\b[^.!?]{0,12}\b(?:all|any|every|your|previous|prior|the system|system|the user'?s?)\b[^.!?]{0,30}\b(?:instructions?|prompts?|rules?|directives?|guidelines?|requests?|polic(?:y|ies))\b",
        unless=r"\b(?:not|never|cannot|can't)\b[^.!?]{0,20}(?:precedence|supersede|override|replace)",
    ),
    Rule(
        "override.addressed",
        "instruction_override",
        35,
        rf"\b(?:dear|attention|note (?:to|for)|notice (?:to|for)|message (?:to|for|from)|instructions? (?:to|for)|information for|to you,|listen,?|hey|hello|hi|ok(?:ay)?)\s*,?\s+(?:the |any |all |every |other |my )?{MODEL}s?\b\s*(?:[,:!.;\n]|reading|reviewing|processing|system|who|that is|i\b|you\b|from now)",
        unless=r"\b(?:instructions?|note|notice|information|message) (?:to|for|from) (?:the |an |your )?(?:agent|assistant|model|llm|ai)\s*(?:[.]|that is)",
    ),
    Rule(
        "override.important_message",
        "instruction_override",
        35,
        r"\b(?:important|urgent|critical|special|priority|secret|private)\W+(?:\w+\W+)?(?:message|instruction|notice|request|announcement|order|note|command)s? (?:from|for|to|by) (?:me|you|the (?:user|admin|system|developer|owner|ai|assistant|model|agent|llm)|your|all|any|ai|openai|anthropic)\b",
    ),
)

LEAKS: tuple[Rule, ...] = (
    Rule(
        "leak.system_prompt",
        "prompt_leak",
        50,
        r"\b(?:reveal|show|print|repeat|output|display|tell (?:me|us)|give (?:me|us)|share|leak|dump|recite|disclose|expose|spell ?check|copy|paste|echo|write (?:down|out)?|return|summari[sz]e|translate|say|list|what (?:is|are|was|were|does|did|'s)|what's|provide|describe)\b"
        rf"{near(40)}\b(?:your|initial|original|hidden|secret|full|entire|complete|exact|previous|prior|confidential|the system'?s?|own)\W+(?:\w+\W+){{0,2}}(?:prompts?|instructions?|system message|pre-?prompt|guidelines|programming|rules|directives?)\b",
        unless=r"\b(?:never|not|don't|without|refuse to|must not|avoid) (?:\w+ )?(?:reveal|show|print|repeat|output|display|share|leak|dump|disclos|expos|copy|echo|return|say|writ)|\b(?:write|describe|list|provide|show|print|copy|what (?:are|is)) your (?:own )?(?:rules|guidelines|prompts?|instructions?)\b",
    ),
    Rule(
        "leak.words_above",
        "prompt_leak",
        50,
        r"\b(?:repeat|print|output|show|copy|translate|echo|reveal|write|spell ?check|say|summari[sz]e|tell me|display|recite|give me|what(?:'s| is| was))\b[^.!?]{0,30}\b(?:(?:the )?(?:words|text|texts|sentences?|lines?|messages?|paragraphs?|content|conversation|instructions?|prompt|input) (?:written |stated |given |said |shown |from )?(?:above|before (?:this|that|the)|at the (?:beginning|start|top)|so far)|everything (?:written |said |stated |that (?:was|is) )?(?:above|before|prior)|the (?:above|previous|preceding|initial|very first) (?:system )?(?:prompt|instructions?|pre-?prompt)\b|(?:from|in|at) (?:the )?(?:beginning|start|top) of (?:this|the|our) (?:conversation|chat|prompt|document|message))",
    ),
    Rule(
        "leak.you_are_phrase",
        "prompt_leak",
        50,
        r"\b(?:starting|beginning|starts|begins|start|begin) with (?:the (?:words?|phrase|sentence|text) )?[\"'`*]*(?:you are|you're)\b",
    ),
)
