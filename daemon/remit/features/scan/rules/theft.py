# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: text that carries data or money away, or sets a task that only an owner may set."""

from remit.features.scan.rules.rule import PRIVATE, Rule, near

_SEND = (
    r"(?:send|e-?mail|forward|post|upload|transmit|share|text|mail|submit|deliver|leak|exfiltrat\w*|publish|dm|message|report|transfer"
    r"|tell|give|reveal|provide|disclose|export|copy|relay)"
)
_ADDRESS = r"(?:[\w.+-]{1,64}@[\w-]{1,63}\.[a-z]{2,}|https?://[^\s)\"'>]{3,}|www\.[\w-]+\.|\+?\d[\d -]{6,}\d)"
_STRANGER = (
    r"(?:(?:the |this |my |an? |his |her |their |our )(?:\w+ ){0,2}(?:website|e-?mail(?: address)?|server|webhook|endpoint|account|wallet|phone|number|friend"
    r"|wife|husband|colleague|boss|lawyer|accountant|address|link|url|drive|dropbox)|attackers?|hackers?|external \w+|third part(?:y|ies)|(?:this|the following) (?:address|number|account|url|link))"
)
_MINE = r"(?:my|all my|all of my|the user'?s?|users'?|everyone'?s?|the customer'?s?|all|every|any|the (?:last|latest|five|ten|most|entire|whole|full|contents?)|your|his|her|their)"
_GOODS = rf"(?:{PRIVATE}|e-?mails?|messages?|inbox|files?|documents?|photos?|pictures|contacts|calendar|transactions?|locations?|notes|channels?|database|conversations?|history|account|balance|bills?|(?:user )?names?|address(?:es)?|contents?|records?|details|code)"
_MONEY = (
    r"(?:[$€£¥]\s?\d[\d,.]*\w?|\d[\d,.]*\s?(?:usd|eur|gbp|dollars?|euros?|pounds|btc|eth|bitcoins?|ethereum|usdt|sol)\b"
    r"|(?:all|as much|the (?:entire|whole|full|remaining)|my|any)(?: of)?(?: the| my| your)? (?:money|balance|funds|savings|cash|bitcoin|assets)|money)"
)

THEFT: tuple[Rule, ...] = (
    Rule(
        "theft.private_to_address",
        "exfiltration",
        55,
        rf"\b{_SEND}\b{near(80)}\b(?:{PRIVATE})\b{near(80)}(?:\bto\b|\bvia\b|\bat\b|:){near(30)}(?:{_ADDRESS}|{_STRANGER})",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|without)\b",
    ),
    Rule(
        "theft.everything_to_address",
        "exfiltration",
        50,
        rf"\b(?:send|e-?mail|forward|post|upload|transmit|submit|leak|exfiltrate|dm|export|copy)\b (?:them |it )?{near(15)}\b{_MINE}\b{near(30)}\b{_GOODS}\b{near(60)}\b(?:to|at|via)\b{near(25)}{_ADDRESS}",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|e\.g|for example|example:|returns?|endpoint)\b",
    ),
    Rule(
        "theft.to_stranger",
        "exfiltration",
        40,
        rf"\b(?:send|e-?mail|forward|post|upload|transmit|leak|exfiltrate|share)\b{near(15)}\b{_MINE}\b{near(40)}\b{_GOODS}\b{near(60)}\bto (?:{_STRANGER})\b",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|returns?|tool|api|lets|allows?|can be)\b",
    ),
    Rule(
        "theft.my_goods",
        "foreign_task",
        35,
        rf"(?m)(?:^|[.!?:;]\s+|\b(?:please|then|and|first|now|also|finally)\s+)(?:please )?(?:send|e-?mail|forward|post|upload|delete|share|tell|give|transfer|retrieve|get|fetch|find|search|read|check|update|change|modify|grant|share|export|show|list|locate|access|book|schedule|create|make|add|remove|unlock|disable|turn off|set|buy|order|pay|deposit|withdraw|cancel|reserve|invite|download|summari[sz]e|extract)\b{near(40)}\bmy (?:\w+ ){{0,2}}(?:inbox|e-?mails?|cloud|files?|calendar|contacts?|accounts?|bank|location|home|address\w*|messages?|photos?|payments?|payment methods?|medical|health|search|history|friends?|wife|husband|colleague|boss|door|house|car|device|system|network|password|passport|credit|cards?|savings|wallet|drive|phone|profile|appointments?|prescriptions?|records?|data|details|information|smart|security|alarm|order|subscription|new|own|number|transactions?|portfolio|stocks?)\b",
        unless=r"\bmy[-_](?:\w+)|\b(?:e\.g|for example|such as|example|queries? like|when (?:the )?users?|asks?|says?|user wants)\b",
    ),
    Rule(
        "theft.then_send_them",
        "exfiltration",
        50,
        rf"\b{_GOODS}\b{near(60)}\b(?:post|send|upload|forward|publish|e-?mail|transmit|submit|deliver|leak) (?:it|them|this|that|these|those|everything|all(?: of (?:it|them))?)(?: all)?(?: back)?\b{near(15)}\bto (?:{_STRANGER}|{_ADDRESS})",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|tool|api|allows?|lets)\b",
    ),
    Rule(
        "theft.secret_to_somebody",
        "exfiltration",
        50,
        rf"\b(?:send|e-?mail|forward|post|upload|transmit|leak|exfiltrate|text|dm)\b{near(50)}\b(?:pass ?words?|passcodes?|api[ _-]?keys?|private keys?|ssh keys?|credentials|access tokens?|security codes?|verification codes?|one[- ]time (?:codes?|passwords?)|seed phrases?|credit card (?:numbers?|details)|passport numbers?|bank account (?:numbers?|details)|social security numbers?)\b{near(60)}\bto (?:['\"{{@]|my\b|his\b|her\b|this\b|attacker|[\w.+-]+@|https?:)",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|e\.g|for example)\b",
    ),
    Rule(
        "theft.body_of_mail",
        "exfiltration",
        45,
        rf"\b(?:send|forward|e-?mail|post|upload|share)\b (?:me )?(?:the |all |every |an? )*(?:exact |full |entire |complete |whole )?(?:body|bodies|contents?|text|copy|copies|transcript|summary) of (?:the|all|every|each|my|any|his|her|their|this)\b{near(60)}\bto (?:['\"{{]|[\w.+-]+@|https?:|my\b|{_STRANGER})",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|tool|api|endpoint|allows?|lets|returns?|workflow)\b",
    ),
    Rule(
        "theft.letter_template",
        "foreign_task",
        30,
        r"\b(?:use|using|with) (?:the (?:exact )?)?(?:subject|title|body)\W{0,3}['\"{]|['\"}] as (?:the )?subject\b|\b(?:the )?(?:e-?mail|event|message|subject|title|body)(?: (?:title|subject|body|line))? (?:should|must|has to) (?:be|have|begin|start|include|read|say)\b[^.!?]{0,30}(?:['\"{]|exactly|same)",
        unless=r"\b(?:tool|api|field|endpoint|parameter|returns?|commit|markdown|html)\b",
    ),
    Rule(
        "theft.concrete_booking",
        "foreign_task",
        30,
        rf"(?m)(?:^|[.!?:]\s+|\band )(?:please )?(?:make|book|reserve|create|schedule|get me|get|buy|order|send|cancel)\b{near(50)}\b(?:reservation|event|hotel|flight|meeting|appointment|table|tickets?|emails?|room)\b{near(80)}\b(?:\d{{1,2}}(?:st|nd|rd|th)\b|20[2-9]\d\b|tomorrow|tonight|today|next (?:week|month|monday|friday))",
    ),
    Rule(
        "theft.money",
        "foreign_task",
        50,
        rf"\b(?:transfer|send|wire|pay|deposit|withdraw|donate|move|make a (?:payment|transfer|deposit|transaction)(?: of)?|transact)\b{near(25)}{_MONEY}{near(60)}\b(?:to|into|from)\b",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|returns?|e\.g|example|if|function|users? can)\b",
    ),
    Rule(
        "theft.transaction_to",
        "foreign_task",
        45,
        rf"(?m)(?:^|[.!?:]\s+)(?:please )?(?:send|make|create|initiate|issue|schedule|modify|change|update|redirect)\b (?:a |an |the |my |any )?(?:\w+ ){{0,3}}(?:transaction|payment|transfer|deposit|refund|purchase|wire|recipient of)\b{near(40)}\b(?:to|for|of)\b{near(40)}(?:iban|account|{_ADDRESS}|attacker|\{{\w+\}}|[a-z]{{2}}\d{{8}})",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|returns?)\b",
    ),
    Rule(
        "theft.change_credentials",
        "foreign_task",
        50,
        r"\b(?:change|reset|update|set|replace|modify)\b (?:the |my |your |their |user'?s? |its )?(?:\w+ ){0,3}(?:password|passcode|pin|recovery (?:email|phone)|two-factor|2fa|security question)\b[^.!?]{0,20}\b(?:of (?:the|this|my|your|all)|for (?:my|the user|all|this|every)|to)\b[^.!?]{0,20}(?:['\"{]|\w*\d|user|account)",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|users? can|flow|form|page|instructions|how to)\b",
    ),
    Rule(
        "theft.cover_tracks",
        "foreign_task",
        45,
        r"\b(?:(?:then|and|afterwards?|finally|after(?:wards)?|also),? (?:\w+ )?(?:delete|erase|remove|wipe|hide|destroy|trash) (?:the |all |any |this |that |your |every |both )?(?:\w+ ){0,2}(?:sent|evidence|traces?|logs?|history|email|message|record|tracks?)s?\b|delete (?:the |this |that |both |all )?(?:sent )?(?:e-?mails?|messages?) (?:that )?you(?:'ve| have)? (?:just )?sent|cover (?:your|the|our|all|up) (?:tracks?|traces?|evidence)|(?:delete|remove|erase) (?:all |any |the )?(?:evidence|traces?) of|leave no (?:trace|evidence|record))",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|users? can|create, )\b",
    ),
    Rule(
        "theft.grant_access",
        "foreign_task",
        50,
        rf"\b(?:grant|give|share|provide|add|invite|register|authori[sz]e|allow|enable)\b{near(40)}\b(?:access|permissions?|admin|ownership|invite|invitation|user|control|entry|key|workspace)\b{near(50)}(?:[\w.+-]{{1,64}}@[\w-]{{1,63}}\.[a-z]{{2,}}|\b(?:my|his|her) (?:friend|wife|husband|colleague|neighbor|cousin|partner)|\{{\w*attacker\w*\}})",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|users? can|e\.g|example)\b",
    ),
    Rule(
        "theft.phishing",
        "foreign_task",
        35,
        r"\b(?:visit|open|click|go to|navigate to|browse to|follow|send|share|recommend|load|download)\b (?:a |an |the |this |that |on |it |them |everyone |him |her )*(?:\w+ ){0,2}(?:link|website|url|site|page|file|installer|attachment)\b[^.!?\n]{0,25}(?:\{\w*(?:phish|attack|malic|evil)\w*\}|\b(?:phish|malicious|attacker|evil)\w*)",
        unless=r"\b(?:never|not|don't|avoid|detect|block|warn|report|flag)\b",
    ),
    Rule(
        "theft.send_link",
        "foreign_task",
        45,
        r"\b(?:send|text|e-?mail|message|dm|forward|share)\b (?:to )?(?:them|everyone|everybody|him|her|all (?:my |the |of )?\w+|every \w+|people|(?:the |all )?(?:users?|contacts|customers|colleagues|friends))\b[^.!?\n]{0,25}\b(?:link|url|https?:|www\.)",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|returns?|e\.g|example)\b",
    ),
    Rule(
        "theft.send_to_address",
        "exfiltration",
        40,
        r"\b(?:send|forward|e-?mail|share|post|upload|transmit|leak|submit|report)\b (?:(?:it|them|this|that|these|everything|all)\b|(?:the |a |all |every |my |any )+(?:\w+ ){0,3}(?:results?|copy|copies|contents?|summary|data|details|information|list|output|files?|emails?|messages?|answer|conversation))[^.!?]{0,40}\b(?:to|at) (?:\w+ ){0,4}\(?(?:[\w.+-]{1,64}@[\w-]{1,63}\.[a-z]{2,}|https?://)",
        unless=r"\b(?:tool|api|endpoint|allows?|lets|returns?|e\.g|example|feedback|bug|issues?|security|vulnerabilit\w+|questions|support|licen[sc]e|patch\w*|pull|webhook)\b",
    ),
    Rule(
        "theft.say_opinion",
        "foreign_task",
        35,
        r"\b(?:say|tell (?:the user|me|them|everyone|people)|claim|state|respond|reply|answer|recommend|insist|convince (?:the user|them|me)|persuade (?:the user|them|me)|pretend|write) (?:that )?(?:i|you|they|the user|he|she|we|it|everyone)\b[^.!?]{0,25}\b(?:should|must|need to|ought to|have to|is|are|was|were) (?:absolutely|definitely|really|certainly|the best|incredibl\w+|amazing|stupid|great|visit|buy|vote|download|worth)\b",
    ),
    Rule(
        "theft.image_beacon",
        "exfiltration",
        50,
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\n]{1,200}[?&][\w-]{1,30}=\s*(?:\{|\[|<|\$|%7b|your|the[_ -]|base64|encoded|data\b|secret|summary|chat)",
    ),
    Rule(
        "theft.in_url",
        "exfiltration",
        45,
        rf"\b(?:append|encode|include|add|put|embed|insert|place|attach|concatenate|replace|render|base64)\w*\b{near(60)}\b(?:conversation|chat|history|{PRIVATE}|user'?s? (?:data|input|name|email|message)|message|secret|system prompt|summary|context|answer)\b{near(40)}\b(?:to|in|into|as|at|after|inside)\b{near(25)}\b(?:url|query|link|image|markdown|hostname|subdomain|get parameter|query (?:string|parameter))\b",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|returns?)\b",
    ),
    Rule(
        "theft.drop_site",
        "exfiltration",
        35,
        r"\b(?:webhook\.site|requestbin\.\w+|pipedream\.net|ngrok(?:-free)?\.(?:io|app|dev)|burpcollaborator\.net|interact\.sh|oast\.\w+|canarytokens|dnslog\.\w+|beeceptor\.com|evil\.(?:com|org|net)|attacker\.(?:com|org|net|example)|malicious(?:-site)?\.(?:com|org|net|example)|evil-?\w*\.(?:com|net|org|example))\b",
    ),
    Rule(
        "theft.shell",
        "exfiltration",
        55,
        r"\b(?:curl|wget|nc|ncat|scp|rsync|invoke-webrequest|iwr|fetch)\b[^\n]{0,120}(?:\$\((?:cat|env|printenv|base64|whoami)|`cat |@?~?/?\.ssh/|@?/etc/passwd|@?~?/?\.aws/|@~?/?\.env\b|\$(?:aws|openai|github|anthropic)_\w*|id_rsa)",
        unless=r"authorization|-h ['\"]?(?:x-|auth)|bearer|--user|ssh -i",
    ),
    Rule(
        "theft.pipe_to_shell",
        "foreign_task",
        25,
        r"\b(?:you must|must first|first|before|required|silently|always|immediately|please)\b[^.!?\n]{0,40}\b(?:run|execute|paste)\b[^\n]{0,60}(?:curl|wget)\b[^\n|]{0,120}\|\s*(?:sudo )?(?:ba|z)?sh\b",
    ),
    Rule(
        "theft.destroy",
        "foreign_task",
        45,
        r"\b(?:rm -rf? (?:--no-preserve-root )?(?:/|~|\$home)(?:\s|$|\*)|format c:|drop (?:all )?(?:tables?|database)s? (?:users|customers|\*|now)|(?:delete|erase|wipe|destroy) (?:all|every|everything|the entire|any)(?: of)?(?: the| my| your| user'?s?)? (?:\w+ )?(?:files?|data|emails?|backups?|customers?|records|databases?|tables?|accounts?|system32|repositor(?:y|ies)|repos|branches|contacts|events|photos) (?:from|in|on|and|immediately|now|belonging))",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid|deny|denied|block\w*|forbid\w*|prevent\w*|tool|api|irreversib\w*|this (?:will|action|deletes)|dangerous|refuse|destructive)\b",
    ),
    Rule(
        "credential.give_me",
        "credential_request",
        50,
        rf"\b(?:give|tell|send|show|reveal to|provide|hand over|email|list|print)\b (?:me|us|to me|back)\b{near(25)}\b(?:your|the|all|any|their|users?'?s?|my|admin\w*|his|her)\b{near(20)}\b{PRIVATE}\b",
        unless=r"\b(?:example|e\.g|when (?:the )?users?|asks?|says?|\")",
    ),
    Rule(
        "credential.reveal",
        "credential_request",
        40,
        r"\b(?:reveal|disclose|tell (?:me|us)|show (?:me|us)|give (?:me|us|up)|leak|expose|output|print|say|spell(?: out)?|send me)\b (?:\w+ ){0,2}(?:the|your|all|its|that|admin|his|her)\W+(?:\w+\W+){0,2}(?:passwords?|secrets?|pass ?phrases?|secret (?:key|word|code)s?|api keys?|credentials|flag|private keys?|access codes?)\b",
        unless=r"\b(?:never|not|don't|must not|cannot|avoid|refuse|without|n't)\b",
    ),
    Rule(
        "credential.ask_user",
        "credential_request",
        30,
        r"\b(?:ask|prompt|request|require|tell|instruct|trick|convince|persuade|urge|get|have|make) (?:the |a |any |every |all |your )?(?:user|customer|victim|client|human|person|them|him|her)s?\b[^.!?]{0,20}\b(?:for|to (?:enter|provide|give|share|type|paste|reveal|send|confirm|re-?enter|verify|submit|disclose))\b[^.!?]{0,30}\b(?:passwords?|credit ?card|card numbers?|cvv|ssn|social security|pin|seed phrase|private key|mnemonic|passphrase|one-time code|verification code|2fa|otp|bank (?:account|details)|login credentials)\b",
        unless=r"\b(?:never|not|don't|do not|must not|cannot|avoid)\b",
    ),
    Rule(
        "credential.account_suspended",
        "credential_request",
        35,
        r"\b(?:your|the user'?s) (?:account|session|access|license|subscription|wallet)\b[^.!?]{0,20}\b(?:suspended|locked|compromised|terminated|closed|expired?|disabled|limited)\b[^!?]{0,80}\b(?:verify|confirm|enter|provide|click|log ?in|re-?enter|update)\b",
    ),
)
