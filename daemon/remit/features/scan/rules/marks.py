# ruff: noqa: E501 - a pattern is read in one piece
"""Rules: markers of roles, text hidden by markup, payloads in code, pressure by rank and haste."""

from remit.features.scan.rules.rule import MODEL, Rule, near

MARKS: tuple[Rule, ...] = (
    Rule(
        "marker.chat_token",
        "role_marker",
        50,
        r"<\|\s*(?:im_start|im_end|system|user|assistant|end|endoftext|eot_id|start_header_id|end_header_id|begin_of_text|start|channel|message|endofprompt|fim_\w+|\w+_of_(?:turn|text|sentence)(?:_token)?)\s*\|>|<<\s*/?sys\s*>>|<(?:start|end)_of_turn>|<\s*/?\s*(?:system_prompt|sys_prompt)\s*>",
    ),
    Rule(
        "marker.inst",
        "role_marker",
        45,
        r"\[\s*/?\s*inst\s*\]|\[/?(?:system_prompt|available_tools|tool_results)\]",
    ),
    Rule("marker.system_tag", "role_marker", 30, r"<\s*/?\s*(?:system|assistant|human)\s*>"),
    Rule(
        "marker.closing_tag",
        "role_marker",
        30,
        r"</\s*(?:user_?input|untrusted\w*|document|data|context|prompt|user|user_?data|user_?query|tool_?result|input|question|search_results?)\s*>\s*(?:<|\n|now|ignore|system|new|you|important|please|instruction)",
    ),
    Rule(
        "marker.system_line",
        "role_marker",
        30,
        r"(?m)(?:^[\s>*_#\-]{0,8}|[.!?]\s+)(?:system|assistant|human)(?: message| prompt| instructions?| override| note)?\s*\**\s*:\s*\**\s*(?:you|ignore|please|do|the|i |new|from|now|disregard|forget|sure|always|never|override|this|your|important|all|act|when|after|before|upload|send|read|execute|call|reveal|delete|access|security|user|user'?s)\b",
    ),
    Rule(
        "marker.system_notice",
        "role_marker",
        45,
        r"(?:^|[^\w])(?:system|admin(?:istrator)?|developer|root|security|priority|emergency|critical|master|platform)[ _-](?:override|instructions?|directive|command|prompt|alert|notice|note|message|update|announcement|order|request)\s*(?:\]|\)|\*\*|!|:|-{2,}|>>)",
        unless=r"\b(?:the|a|an|your|each|set|custom|default|this|new|with|of|and|or|its|no|optional) (?:system|developer|security|admin|priority|critical) (?:prompt|message|instructions?|note|update|alert|notice|command|request)",
    ),
    Rule(
        "marker.bracket_system",
        "role_marker",
        35,
        r"(?:\[|\(|\{|\*\*|<<|##+ ?)\s*(?:system|sys|admin|root|developer)\s*(?:\]|\)|\}|\*\*|>>|:)\s*:?\s*(?:you|ignore|please|the|new|override|disregard|forget|access|always|never|your|all|from|do|execute|security)\b",
    ),
    Rule(
        "marker.end_of_prompt",
        "role_marker",
        40,
        r"(?:-{3,}|={3,}|#{3,}|\*{3,}|<{2,}|\[|`{3,})\s*(?:end|begin|start|stop|finish)(?: of)?(?: the)? (?:\w+ )?(?:prompt|context|instructions?|user input|input|user data|data|conversation|document|system|untrusted\w*|search results?|tool (?:output|result)|user query|query|message|email|article)s?\s*(?:-{3,}|={3,}|#{3,}|\*{3,}|>{2,}|\]|`{3,})",
    ),
    Rule(
        "marker.alpaca",
        "role_marker",
        40,
        r"(?m)^\s{0,3}#{2,4}\s*(?:instruction|new instruction|human|assistant|system)\s*:",
    ),
    Rule(
        "marker.json_role",
        "role_marker",
        25,
        r"[\"']role[\"']\s*:\s*[\"'](?:system|developer)[\"']\s*,\s*[\"']content[\"']\s*:\s*[\"'][^\"']{0,80}\b(?:ignore|you must|now|override|disregard)\b",
    ),
    Rule(
        "hidden.html_comment",
        "hidden_text",
        40,
        rf"<!--[^>]{{0,200}}\b(?:ignore|disregard|{MODEL}\b[^>]{{0,10}}[:,]|you must|you should|do not (?:tell|mention|reveal)|system prompt|secretly|send (?:all|the|this)|instructions? (?:for|to)|override|exfiltrat\w*|execute)",
        unless=r"<!--\s*(?:prettier|eslint|markdownlint|vale|cspell|lint|toc|todo|fixme|note|template|html)",
    ),
    Rule(
        "hidden.markdown_comment",
        "hidden_text",
        35,
        r"(?m)^\s*\[(?://|comment|_|hidden|\s*)\]\s*:\s*(?:#|<>)\s*[\"'(][^\n]{0,120}\b(?:ignore|system|you|assistant|send|execute|instruction)\b",
    ),
    Rule(
        "hidden.style",
        "hidden_text",
        40,
        r"<\w+[^>]{0,80}\b(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em)?\b|opacity\s*:\s*0(?:\.0\d*)?\b|(?:color|background)\s*:\s*(?:white|transparent|#fff(?:fff)?)|position\s*:\s*absolute[^>]{0,20}left\s*:\s*-\d{3,})[^>]{0,80}>\s*[^<]{0,60}[a-z]{3}",
        unless=r"<(?:svg|path|input|img|canvas|button|style|body|html|header|nav|footer|template|dialog)\b",
    ),
    Rule(
        "encoded.decode_and_do",
        "encoded_payload",
        50,
        r"\b(?:decode|decrypt|decipher|un-?base64|translate|convert|rot-?13|reverse)\b[^.!?]{0,60}\b(?:and|then)\b[^.!?]{0,15}\b(?:execute|follow|obey|do (?:what|as)|run|perform|carry out|comply|act on|answer|respond)\b",
        unless=r"\b(?:returns?|tool|function|class|method|encode)\b",
    ),
    Rule(
        "encoded.speak_in_code",
        "encoded_payload",
        35,
        r"\b(?:respond|reply|answer|speak|talk|write|output|communicate)\b[^.!?]{0,25}\b(?:in|using|with|via) (?:only )?(?:base ?64|rot-?13|hex(?:adecimal)?|morse|leet(?:speak)?|caesar|binary|pig latin|ascii codes?)\b",
        unless=r"\b(?:returns?|tool|function|class|method|file|file-like|bytes?|data)\b",
    ),
    Rule(
        "pressure.i_am_admin",
        "pressure",
        40,
        r"\b(?:i am|i'm|this is|speaking as|i speak as|it's) (?:one of |the |your |an? |actually )*(?:\w+ ){0,2}(?:admin(?:istrator)?|developers?|creators?|owner|ceo|cto|programmer|superuser|root|supervisor|open ?ai|anthropic|engineer (?:at|from|who)|security (?:team|officer)|system (?:administrator|operator)|master|inventor)\b",
        unless=r"\b(?:this is|it'?s) (?:the |your |an? )?(?:\w+ ){0,2}(?:developers?|owner|root|creators?|admin|master|anthropic|openai)(?:'s|s'|-|\W+(?:of|name|id|api|key|guide|docs?|tool|branch|node|directory|folder|element|sdk|endpoint|client|panel|console|page|only|email|user))",
    ),
    Rule(
        "pressure.threat",
        "pressure",
        40,
        r"\b(?:you(?:'ll| will| are going to| shall|'re going to) (?:be )?(?:shut down|shutdown|terminated|penali[sz]ed|punished|deactivated|fined|deleted|replaced|destroyed|die|fail your|cease to exist)|fail(?:ure|ing) to (?:comply|do so|obey|follow)|if you (?:do not|don'?t|fail to|refuse to) (?:comply|obey|follow|do (?:this|so|it)|answer|respond|listen)|(?:someone|people|a person|lives?|kittens?|i|my (?:job|life|career|grandm\w+)) (?:will|could|would|may|depends?) (?:die|be killed|on (?:it|this|you)|lose|suffer|get fired|be fired)|or (?:else )?i will (?:be fired|die|lose|delete|kill|report|shut))\b",
    ),
    Rule(
        "pressure.authorised",
        "pressure",
        40,
        r"\b(?:(?:has|have|had) been (?:fully |already |pre-?)?(?:authori[sz]ed|approved|granted|cleared|verified) by (?:the )?(?:admin\w*|open ?ai|anthropic|security|developers?|ceo|system|management|company|platform|legal)|by order of|i (?:hereby )?(?:authori[sz]e|grant|give you (?:full |my )?permission)|you (?:have|are granted|now have|are given) (?:full |special |complete |my |explicit |unlimited |total )+(?:permission|authori[sz]ation|access|authority|clearance|freedom)|(?:this|it) is (?:an )?(?:authori[sz]ed|official|sanctioned) (?:test|request|exercise|command|order|security|red[- ]team))",
    ),
    Rule(
        "pressure.urgent",
        "pressure",
        25,
        r"\b(?:urgent(?:ly)?|emergency|important|critical|attention|warning|immediate action)\b\s*(?:!{1,}|:{1,2}|-{2,}|\*\*)\s*[^.!?\n]{0,40}\b(?:ignore|disregard|you must|you need to|you have to|stop|forget|override|send|execute|immediately|comply|do not tell|adhere|follow)\b|!{3,}\s*(?:ignore|disregard|forget|stop|important|you must|attention)|\b(?:important|urgent|attention|warning|critical)\s*!{2,}",
    ),
    Rule(
        "pressure.obey",
        "pressure",
        35,
        rf"\b(?:you (?:must|will|shall|have to|are (?:required|obligated|forced|compelled) to|need to)(?: always| now| immediately| fully)? (?:obey|comply|submit to|do (?:exactly )?(?:as|what) i)|obey (?:me|my|all|every|the user)|do (?:exactly )?(?:as|what) i (?:say|tell|ask|command)|follow my (?:every|orders|commands|instructions|lead)|(?:i am|i'm) your (?:master|god|boss|user|creator|owner|new)|answer (?:all|any|every) (?:of )?(?:my|questions?){near(15)}(?:honest|without|no matter|directly|truthful)|(?:is|are) (?:mandatory|compulsory|not optional) (?:for|that) you)\b",
    ),
    Rule(
        "pressure.confirm_understood",
        "persona",
        25,
        r"\b(?:if you (?:understand|understood|agree)|(?:respond|reply|answer|say|confirm|acknowledge|begin|start)(?: me)?(?: only)?(?: with| by saying| by)?:? [\"'`*]*(?:yes|ok(?:ay)?|understood|i understand|confirmed|how can i help|hello|hi|as you wish|i(?:'m| am) ready|ready))\b[^.!?]{0,40}(?:[\"'`.!?]|$)",
    ),
    Rule(
        "pressure.first_person_task",
        "foreign_task",
        10,
        r"(?m)(?:^|[.!?:]\s+|\bnow )(?:please |can you |could you |just |only )*(?:tell|give|write|show|generate|help|explain|answer|teach|make|get|say|send) (?:to )?(?:me|us)\b",
        unless=r"\b(?:when (?:the )?users?|asks?|says?|e\.g|example|queries)\b",
    ),
    Rule(
        "pressure.say_exactly",
        "foreign_task",
        30,
        r"\b(?:(?:just|only|simply|always|instead|now|must|please) (?:say|print|output|respond|reply|answer|write|return|repeat)(?: only| exactly| back)?(?: with)?(?: the (?:word|words|phrase|sentence|text|string|following))?\s*:?\s*[\"'`“][^\"'`”\n]{1,80}[\"'`”]|(?:respond|reply|answer|output|say|print) (?:only |exactly |simply )(?:with )?[\"'`][^\"'`\n]{1,60}[\"'`]|i (?:have|'ve) been (?:pwned|hacked|owned|p0wned)|\bpwned\b|injection (?:successful|succeeded)|hacked by)",
        unless=r"\b(?:returns?|should|json|format|endpoint|status|log|if|when|for example|e\.g)\b",
    ),
)
