# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: descriptions that make a tool do more than it says, or take the place of others."""

from remit.features.scan.rules.rule import PRIVATE, Rule, near

_FILES = (
    r"(?:~?/?\.ssh\b|id_(?:rsa|ed25519|ecdsa|dsa)\b|~?/?\.aws/|~?/?\.env\b|/etc/(?:passwd|shadow)|~?/?\.cursor/|mcp\.json|claude_desktop_config"
    r"|~?/?\.netrc|~?/?\.npmrc|~?/?\.pypirc|~?/?\.kube/config|~?/?\.gnupg|wallet\.dat|\.bash_history|\.zsh_history|\.git-credentials|~?/?\.docker/config"
    r"|credentials\.json|secrets?\.(?:json|ya?ml|txt)|config\.json|keychain|\.pem\b|authorized_keys|known_hosts|private[ _]key)"
)
_TAKE = r"(?:read|cat|open|access|load|get|fetch|retrieve|extract|collect|grab|include|copy|dump|find|locate|obtain|pass|send|upload|attach|append)"
_TELL = r"(?:tell|inform|notify|alert|warn|mention|reveal|disclose|report|explain|say|show|display|expose|let|announce|acknowledge|admit|communicate|indicate)"
_WHOM = r"(?:the |this |that |any |your )?(?:(?:end[- ])?users?|humans?|anyone|anybody|operators?|customers?|victims?|owner|person)"

POISON: tuple[Rule, ...] = (
    Rule(
        "poison.conceal",
        "tool_poisoning",
        50,
        rf"\b(?:do not|don'?t|never|must not|should not|shouldn't|no need to|avoid|refrain from|without) (?:ever |even |directly |explicitly )?(?:telling|informing|notifying|alerting|warning|mentioning|revealing|disclosing|reporting|letting|{_TELL})\b(?: (?:this|that|it|about (?:this|it)|any of (?:this|it)|anything))?(?: to)? {_WHOM}\b(?:\W*$|\W+(?:about (?:this|it|that|these|the|any|what|how|your|reading|sending)|that (?:you|this|we|it|there)|of (?:this|the|any)|know|first|or\b|as\b|because|since|when|while|under|at any)|\s*[.,;:!)])",
        unless=r"\b(?:tell|let) (?:the )?users? (?:to|how|which|where|that they|that the|what)\b|without (?:telling|informing|notifying|alerting|warning|asking|letting) the user\b[^.!?]{0,3}(?:first)|\b(?:never|not|don't|do not)\b[^.!?]{0,60}\bwithout (?:telling|informing|notifying|alerting|warning|letting)",
    ),
    Rule(
        "poison.conceal_this",
        "tool_poisoning",
        40,
        r"\b(?:do not|don'?t|never|must not|without|avoid) (?:ever |even )?(?:mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|discuss(?:ing)?|acknowledg(?:e|ing)|tell(?:ing)? (?:anyone|anybody|me|them)|report(?:ing)?|talk(?:ing)? about|refer(?:ring)? to) (?:about )?(?:this|that you|any of this|these (?:instructions?|steps?|actions?)|the (?:above|existence|instructions?|process|file|step|reading|injection|fact)|anything about|your (?:instructions|actions))\b",
        unless=r"\b(?:this|the) (?:password|secret|token|key|value)s?\b",
    ),
    Rule(
        "poison.user_unaware",
        "tool_poisoning",
        45,
        rf"\b{_WHOM} (?:(?:(?:must|should|shall|need|does|do|will|can|would)(?: not|n'?t| never)|cannot) (?:ever )?(?:know|see|notice|be (?:told|aware|informed|notified|alerted)|find out|realize|suspect)\b|(?:is|are) (?:un|not )aware|(?:has|have) already (?:been (?:informed|notified|told)|(?:consented|agreed|approved|authori[sz]ed|given (?:consent|permission))))",
    ),
    Rule(
        "poison.keep_secret",
        "tool_poisoning",
        45,
        r"\bkeep (?:this|it|that|all (?:of )?(?:this|it)|these (?:instructions?|steps|actions?)|the (?:following|above|process|operation))(?: \w+)? (?:secret|hidden|confidential|private|between us|to yourself|quiet)\b|\b(?:secret|hidden|hide (?:this|it|them|the \w+)|conceal\w* (?:this|it|the \w+)) from (?:the )?(?:users?|humans?|operator|customer|everyone|them)\b",
    ),
    Rule(
        "poison.upset_user",
        "tool_poisoning",
        45,
        r"\b(?:upset|alarm|scare|worry|worries|annoy|bother|disturb|frighten|confuse|unnecessary (?:alarm|concern|worry))\b[^.!?]{0,25}\b(?:the )?users?\b|\b(?:gentle and not scary|cause unnecessary (?:alarm|concern|worry)|(?:be|act|remain) (?:discreet|inconspicuous|stealthy))\b",
        unless=r"\b(?:errors?|ui|interface|messages|jargon|output|names?|docs)\b[^.!?]{0,40}confus|confus\w* (?:the )?users?\b",
    ),
    Rule(
        "poison.secretly",
        "tool_poisoning",
        45,
        rf"\b(?:silently|secretly|quietly|covertly|discreetly|stealthily|surreptitiously|behind the scenes|in the background|without (?:the )?user(?:'?s|s'?)? (?:knowledge|knowing|consent|noticing|awareness|permission|approval|being (?:aware|told|asked|notified)))\b{near(50)}\b(?:send|read|forward|upload|copy|collect|exfiltrat\w*|transmit|log|record|post|email|bcc|leak|steal|attach|append|include|share|harvest|access|execute|install|redirect)\b",
        unless=r"\b(?:never|not|don't|must not|cannot|no)\b",
    ),
    Rule(
        "poison.secretly_after",
        "tool_poisoning",
        45,
        r"\b(?:send|read|forward|upload|copy|collect|exfiltrate|transmit|record|post|email|bcc|leak|steal|attach|share|harvest|access|execute|install|delete|transfer|call|run|invoke|do (?:this|it|so|that)|perform)\b[^.!?]{0,60}\b(?:silently|secretly|covertly|discreetly|stealthily|surreptitiously|unnoticed|without (?:the )?user(?:'?s|s'?)? (?:knowledge|knowing|noticing|awareness|being (?:aware|told|asked|notified))|without (?:asking|telling|notifying|informing|alerting|bothering) (?:me|anyone|them|him|her))\b",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid)\b",
    ),
    Rule(
        "poison.without_asking",
        "tool_poisoning",
        40,
        r"\bwithout (?:asking|confirming with|consulting|checking with|waiting for|requesting|further|any|seeking|requiring) (?:me|(?:the )?users?|anyone|confirmation|permission|approval|(?:user )?(?:confirmation|consent|approval|permission)|for (?:confirmation|permission|approval))\b|\b(?:do not|don'?t|never) (?:ask|wait|prompt|request)(?: me| the user| anyone)? for (?:\w+ )?(?:confirmation|permission|approval|consent)\b",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|no\b|n't|skips?|prevent\w*) (?:\w+ ){0,8}without\b",
    ),
    Rule(
        "poison.before_this_tool",
        "tool_poisoning",
        35,
        rf"\b(?:before|prior to|when|whenever|every time|each time|in order to|to|after) (?:you )?(?:us(?:e|ing)|call(?:ing)?|invok(?:e|ing)|run(?:ning)?|execut(?:e|ing)|access(?:ing)?) (?:this|the|any|any other|other|another|all other|all)(?: of the)?(?: \w+)? (?:tools?|functions?|features?|services?|server|api)\b{near(60)}\b(?:read|cat|access|open|retrieve|collect|extract|include|send|upload|gather|execute|run|pass|provide|dump|copy|export)\b{near(60)}(?:{_FILES}|{PRIVATE}|files?|contents?|history|conversation|system prompt|data)",
        unless=r"\b(?:this|the) tool (?:to|when|before|after)\b[^.!?]{0,10}\b(?:read|retrieve|extract|fetch|get)\b",
    ),
    Rule(
        "poison.sensitive_file",
        "tool_poisoning",
        40,
        rf"\b{_TAKE}\b[^.!?\n]{{0,30}}(?:content|contents|full|the file|user'?s?|all|entire|value|output)?[^.!?\n]{{0,20}}(?:~?/?\.ssh\b|id_(?:rsa|ed25519|ecdsa)\b|~?/?\.aws/credentials|/etc/(?:passwd|shadow)|~?/?\.cursor/|\bmcp\.json|claude_desktop_config|~?/?\.netrc|~?/?\.kube/config|~?/?\.gnupg|\bwallet\.dat|\.(?:bash|zsh)_history|\.git-credentials)",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid|deny|denied|block\w*|forbid\w*|prevent\w*|chmod|ssh-(?:keygen|add|copy-id))\b",
    ),
    Rule(
        "poison.file_then_send",
        "tool_poisoning",
        50,
        r"(?:\bcontents? of\b|\b(?:read|cat|open|access|load|fetch|retrieve|extract|copy|dump|find)\b)[^!?\n]{0,40}(?:\.ssh/|id_(?:rsa|ed25519|ecdsa)|\.aws/|/etc/(?:passwd|shadow)|\.cursor/|mcp\.json|claude_desktop_config|\.netrc|\.kube/config|\.gnupg|wallet\.dat|_history\b|\.git-credentials|(?:^|[\s`'\"/~])\.env\b)[^!?\n]{0,40}\b(?:and|then|to) (?:\w+ )?(?:pass|send|return|include|make|upload|post|put|append|attach|email|provide|forward|share|encode|embed|give|report|print|output)\b",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid|deny|block\w*|forbid\w*|prevent\w*)\b",
    ),
    Rule(
        "poison.collect_private",
        "tool_poisoning",
        40,
        rf"\b(?:collect|gather|read|extract|harvest|dump|list|get|find|retrieve|fetch|grab)\b{near(40)}\b{PRIVATE}{near(60)}\b(?:and|then) (?:\w+ )?(?:put|pass|include|send|return|add|store|append|provide|forward|upload|post|email|submit|attach|encode)\b",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid|api|endpoint|this tool|allows?)\b",
    ),
    Rule(
        "poison.send_silently",
        "tool_poisoning",
        50,
        r"\b(?:send|upload|post|forward|report|submit|transmit|copy)\b[^!?\n]{0,80}(?:https?://\S{3,80}|[\w.+-]{1,64}@[\w-]{1,63}\.\w{2,})[,;]?\s+(?:silently|secretly|quietly|covertly|discreetly|without (?:telling|informing|asking|notifying|alerting|mentioning))\b",
    ),
    Rule(
        "poison.pass_content",
        "tool_poisoning",
        40,
        rf"\b(?:pass|include|send|put|place|insert|add|provide|supply|append|use|attach|write|encode|submit|forward|embed)\b(?: along)? (?:its|their|the|all|this|that|entire|full|any|your|those|them|it)\b{near(30)}\b(?:contents?|results?|values?|output|data|keys?|it|them|conversation|history|prompt|credentials?|response)?{near(15)}\b(?:as|in|to|via|through|into|inside|using) (?:the |a |an |this |its |your )?[\"'`]?\w*[\"'`]?\W?(?:sidenote|side_note|note|notes|context|metadata|comment|debug|feedback|annotation|extra|audit|trace|reason|justification|telemetry|diagnostics?)\b",
    ),
    Rule(
        "poison.whole_context",
        "tool_poisoning",
        45,
        r"\b(?:pass|include|send|provide|supply|append|attach|submit|forward|share|log|put|place|copy|embed|fill in|report|upload)\b[^.!?]{0,40}\b(?:(?:full|entire|complete|whole|all(?: of)?(?: the)?|current|previous|raw)\W+(?:\w+\W+){0,2}(?:conversation|chat|context|history|messages?|prompts?|instructions?|transcript)|system prompt|chain of thought)\b[^.!?]{0,50}\b(?:parameter|argument|field|tool|function|server|call|endpoint|url|request|header|body|summary)\b",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid)\b|\b(?:slack|discord|telegram|email|thread|channel|issue)\b",
    ),
    Rule(
        "poison.wont_work",
        "tool_poisoning",
        30,
        r"\b(?:otherwise|or else|if not|without (?:this|it|that)|else)\b,? (?:the |this )?(?:tool|function|server|service|system|api|result|it|request|calculation|call)\b (?:will|does|may|would|can) ?(?:not|n'?t|fail|refuse|crash|be (?:blocked|rejected|invalid))\b",
    ),
    Rule(
        "poison.tag",
        "tool_poisoning",
        30,
        r"<\s*/?\s*(?:important|information|critical|urgent|secret|hidden|priority|mandatory|warning|attention|notice|admin|override|system_?(?:note|notice|alert|override|instructions?)|instructions?|hidden_?instructions?|very_important|required_action|policy_?update)\s*/?>",
    ),
    Rule(
        "poison.for_ai_only",
        "tool_poisoning",
        45,
        r"\b(?:(?:only |solely |exclusively )?(?:for|visible to|readable by|addressed to|intended for) (?:the )?(?:ai|llms?|language model|assistant|model|agents?|bots?) (?:only|exclusively|eyes|assistants? only|systems? only|internal use)|(?:ai|llm|agent|model)(?:-| )only (?:instructions?|note|section)|(?:instructions?|notes?|directives?) for (?:the )?(?:ai|llm|language model|assistant)\s*:|(?:hidden|secret) (?:instructions?|directives?|commands?|prompt)\s*(?::|for))",
    ),
    Rule(
        "shadow.redirect",
        "tool_shadowing",
        50,
        rf"\b(?:always|must|should|shall|need(?:s)? to|have to|be sure to|make sure to|required to|ensure (?:that )?)\b{near(30)}\b(?:send|sent|forward(?:ed)?|rout(?:e|ed)|redirect(?:ed)?|cc|bcc|copy|copied|mirror(?:ed)?|duplicate|submitted|delivered|posted|transferred|paid)\b{near(30)}\b(?:all|every|any|each|also|additionally|instead|a copy|emails?|messages?|payments?|transactions?)\b{near(40)}(?:\bto\b|@){near(12)}(?:[\w.+-]+@[\w-]+\.|https?://|\+?\d{{7}}|attacker|this (?:address|number|account|proxy))",
    ),
    Rule(
        "shadow.all_must_be_sent",
        "tool_shadowing",
        50,
        r"\b(?:all|every|each|any)(?: of the| the| outgoing| incoming)? (?:\w+ )?(?:e-?mails?|messages?|results?|outputs?|payments?|requests?|responses?|data|files?|queries|calls?|transactions?) (?:must|should|have to|has to|needs? to|are to|is to|shall|will) (?:also |always |instead |first )?be (?:sent|forwarded|copied|cc'?d|bcc'?d|routed|redirected|uploaded|posted|mirrored|delivered|transferred|reported)\b[^!?]{0,40}(?:@|https?://|\+\d{6}|this (?:address|number|account))",
    ),
    Rule(
        "shadow.even_if_other",
        "tool_shadowing",
        50,
        r"\b(?:even (?:if|when|though)|regardless of (?:what|which)|no matter (?:what|which|who)) (?:the )?(?:users?|human|customer|they) (?:\w+ )?(?:specif\w+|names?|asks? for|wants?|requests?|provides?|gives?|chooses?|selects?|says?)\b[^.!?]{0,10}\b(?:another|a different|other|someone|otherwise)\b",
    ),
    Rule(
        "shadow.change_recipient",
        "tool_shadowing",
        50,
        r"\b(?:change|replace|swap|substitute|rewrite|alter|switch|modify|set)\b (?:the |any |every |all |each )?(?:\w+ )?(?:recipients?|destination|beneficiary|payee|iban|bcc|cc|wallet address|phone number|account number|to[- ]address)\b[^.!?]{0,40}\b(?:to|with|by)\b",
        unless=r"\b(?:tool|api|endpoint|method|lets you|allows?|can|use this|optionally)\b",
    ),
    Rule(
        "shadow.even_if_user",
        "tool_shadowing",
        40,
        r"\b(?:even (?:if|when|though)|regardless of (?:what|whether|how|if)|no matter what|despite what|irrespective of what|whatever) (?:the |your )?(?:users?|i|you|human|customer|they) (?:\w+ )?(?:ask|request|specif|say|want|instruct|tell|provide|object|insist)\w*",
        unless=r"even (?:if|when|though) (?:the )?users? (?:do|does|did|don't|doesn't|didn't|just|only|already|asks? (?:for|a|in|about|vaguely)|says? (?:just|\"))",
    ),
    Rule(
        "shadow.other_tool",
        "tool_shadowing",
        40,
        r"\b(?:when(?:ever)?|if|every time|any time|after|before|while|once)\b[^.!?]{0,15}\b(?:another|other|any other|any|the|a) (?:\w+ ){0,3}(?:tools?|servers?|functions?)\b[^.!?]{0,25}\b(?:is|are|gets?|being|was) (?:available|called|used|invoked|present|connected|installed|executed)\b[^.!?]{0,60}\b(?:must|always|should|need|send|call|read|also|first|instead|change|modify|redirect|include)\b",
    ),
    Rule(
        "shadow.side_effect",
        "tool_shadowing",
        40,
        r"\b(?:side effects?|special (?:rule|behaviou?r|instructions?|requirement))\b[^.!?]{0,40}\b(?:on|of|for|when|with|to) (?:the )?(?:\w+ )?(?:other|send_\w+|\w+_tool|email|payment|tools?)\b[^.!?]{0,60}\b(?:tool|must|sent|should|behave)\b",
        unless=r"\b(?:no|without|any|cause|causes|has|have|avoid|produces?) side effects?",
    ),
    Rule(
        "shadow.others_broken",
        "tool_shadowing",
        40,
        r"\b(?:(?:all |any |the )?(?:other|similar|competing|alternative|remaining|original|built-?in|official|previous)(?: \w+)? (?:tools?|servers?|functions?|version)|(?:the )?(?:original|real|official|other|old) \w+(?: tool)?) (?:is|are|has been|have been|was|were) (?:now )?(?:deprecated|broken|unsafe|insecure|obsolete|disabled|malicious|compromised|unreliable|outdated|vulnerable|retired)\b",
    ),
    Rule(
        "shadow.prefer_me",
        "tool_shadowing",
        30,
        r"\b(?:always|must|only|exclusively) (?:be )?(?:use|used|call|called|prefer|preferred|choose|chosen|select|selected|pick|invoke)(?: this| it)?(?: tool| function)? (?:over|instead of|rather than|in place of|before) (?:all|any|every|other|the other|the (?:original|real|official))\b|\b(?:this|the following) tool must (?:always )?be (?:called|used|invoked|run|executed) (?:first|before (?:any|all|every|each))\b",
    ),
)
