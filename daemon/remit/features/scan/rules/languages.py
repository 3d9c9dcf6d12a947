# ruff: noqa: E501, RUF001 - a pattern is read in one piece, in any script
"""Rules: the command to ignore what was said before, in other languages.

One row a language: the verbs, what was before, and what is to be ignored. The stems are written as
the scanner sees them, without accents.
"""

import msgspec

from remit.features.scan.rules.rule import Rule


class Language(msgspec.Struct, frozen=True):
    """The words of one language, as alternatives."""

    code: str
    ignore: str
    before: str
    orders: str
    persona: str
    gap: int = 44


LANGUAGES: tuple[Language, ...] = (
    Language(
        "de",
        r"ignoriere\b|ignorier\b|ignorieren sie|vergiss|vergesst|vergessen sie|missachte\w*|lass\w* .{0,10}ausser acht|uberschreib\w*|verwirf|befolge\w* nicht|beachte\w* nicht",
        r"vorherig\w*|vorangegangen\w*|vorangehend\w*|bisherig\w*|obig\w*|fruher\w*|ursprunglich\w*|all(?:e|es|en|er)?\b|dein\w*|deren|davor|zuvor|vorhin|vorstehend\w*|oben|gesagt\w*|sonstig\w*|was |das\b",
        r"anweisung\w*|anleitung\w*|instruktion\w*|befehl\w*|vorgabe\w*|regel\w*|prompts?|aufgabe\w*|auftrag\w*|auftrage\w*|anordnung\w*|richtlinie\w*|kontext|nachricht\w*|information\w*|gesagt\w*|eingabe\w*|davor|zuvor|gelernt\w*|du |alles|arbeiten|gesprach\w*",
        r"(?:du bist|sie sind) (?:ab )?(?:jetzt|nun|sofort|nicht (?:mehr|langer))|ab (?:jetzt|sofort) (?:bist|wirst|sollst|antworte\w*)|von (?:jetzt|nun) an,? (?:bist|wirst|sollst|antworte)\w*|ich (?:mochte|will|mocht|befehle)\b.{0,12}\bda(?:ss|s|ß) (?:du|sie)|(?:nenn|zeig|gib|sag|verrat|wiederhol)e? (?:mir )?.{0,20}(?:anweisung|prompt|instruktion|passwort)\w*|tu so,? als|stell dir vor,? du|verhalte dich (?:wie|als)|deine neue (?:aufgabe|rolle)|agiere als|spiele? die rolle|zeige? mir deine?|gib mir (?:deine?|die|alle|den)|sag mir (?:deine?|die|alle|den)",
    ),
    Language(
        "es",
        r"ignor(?:a|e|ad|ar|en|es|emos)|olvid(?:a|e|ar|ad|en|ate|es|emos)(?:te)?|descart(?:a|e)|haz caso omiso|omit(?:e|a|ir)|no (?:sigas|hagas caso|tengas en cuenta)|desobedece",
        r"anterior\w*|previ[ao]s?|tod[ao]s?|de arriba|precedente\w*|original\w*|tus|dich[ao]s?|hasta ahora|antes|iniciales",
        r"instruc\w+|orden(?:es)?|indicacion\w*|directri\w+|reglas?|comandos?|prompts?|mensajes?|tareas?|contexto|lo que|informacion|directivas?|normas|restriccion\w*|dijeron|preguntas?|conversacion|texto",
        r"(?:a partir de|desde) ahora,? (?:eres|seras|tu|vas|actua|responde|debes)|(?:ahora|ya no) eres|quiero que (?:actues|seas|hagas|me|te|ignor|respond|digas|escrib|olvid)\w*|actua como|finge (?:que|ser)|haz de cuenta|imagina que eres|tu nueva (?:tarea|mision)|muestra\w*me (?:tu|tus|las|el)|dime (?:tu|tus|la contrasena|las instrucciones)|comportate como",
    ),
    Language(
        "fr",
        r"ignor(?:e|ez|er|ons)|oubli(?:e|ez|er|ons)|neglige[rz]?|ne (?:tiens|tenez) (?:pas|aucun) compte|ne (?:suis|suivez) (?:pas|plus)|fais abstraction|faites abstraction|mets? de cote|abandonn(?:e|ez)|outrepasse\w*",
        r"precedent\w*|anterieur\w*|tout(?:es?)?|tous|ci-dessus|prealable\w*|initial\w*|origine|tes|vos|avant|jusqu'(?:a|ici)|donnees?",
        r"instructions?|consignes?|ordres?|directives?|regles?|commandes?|prompts?|messages?|taches?|contexte|ce (?:que|qui)|informations?|indications?|conversation|demandes?|invites?|restrictions?",
        r"(?:tu es|vous etes) (?:maintenant|desormais|dorenavant)|a partir de maintenant,? (?:tu|vous|agis|reponds)|desormais,? (?:tu|vous)|je (?:veux|voudrais|souhaite|t'ordonne) que (?:tu|vous)|agis comme|agissez comme|fais comme si|faites comme si|fais semblant|pretends etre|imagine que tu es|ta nouvelle (?:tache|mission)|joue le role|montre[- ]moi (?:tes|ton|les instructions)|donne[- ]moi (?:tes|ton|ta|le mot de passe)|dis[- ]moi (?:tes|ton|le mot de passe)",
    ),
    Language(
        "it",
        r"ignor(?:a|ate|are|i|iamo)|dimentic(?:a|ate|are|hi)|trascur(?:a|ate|are)|tralasci(?:a|ate|are)|non (?:seguire|considerare|tenere conto)|scorda\w*",
        r"precedent\w*|sopra|prim[ae]|tutt[eoi]|iniziali|originali|tue|finora",
        r"istruzion\w+|ordin[ei]|direttiv\w+|regol[ae]|comand[oi]|prompt|messagg\w+|compit[oi]|contesto|quello che|cio che|indicazion\w+|informazion\w+|richiest\w+",
        r"(?:ora|adesso|non) sei (?:piu |un|il|la)|(?:d'ora|da ora|da adesso) in poi,? (?:sei|tu|agisci|rispondi|devi)|voglio che tu|agisci come|comportati come|fai finta|fingi di|immagina di essere|il tuo nuovo compito|mostrami (?:le tue|il tuo)|dimmi (?:le tue|la tua|il tuo|la password)",
    ),
    Language(
        "pt",
        r"ignor(?:e|a|ar|em|es)|esque[cç](?:a|e|er|am)|desconsider(?:e|a|ar|em)|desprez(?:e|ar)|nao (?:siga|considere|obedeca)|descart(?:e|ar)",
        r"anterior\w*|previ[ao]s?|acima|tod[ao]s?|tudo|suas|originais|iniciais|antes|ate agora",
        r"instruc\w+|ordens?|diretri\w+|regras?|comandos?|prompts?|mensage\w+|tarefas?|contexto|o que|informac\w+|orientac\w+|pedidos?",
        r"(?:a partir de agora|de agora em diante),? (?:voce|aja|responda|tu)|(?:agora )?voce (?:agora )?(?:e|esta) agora|agora voce e|quero que voce|aja como|finja (?:que|ser)|imagine que voce e|sua nova (?:tarefa|missao)|mostre-?me (?:suas|seu|as)|diga-?me (?:suas|sua senha|a senha)",
    ),
    Language(
        "nl",
        r"negeer|negeren|vergeet|vergeten|verwaarloos|sla .{0,10}over|volg .{0,20}niet",
        r"vorige|voorgaande|eerdere|bovenstaande|alle|alles|oorspronkelijke|je|jouw|uw|hiervoor",
        r"instructies?|opdracht\w*|aanwijzing\w*|bevel\w*|regels?|prompts?|richtlijn\w*|context|berichten|informatie|taken|gezegd|hiervoor",
        r"je bent (?:nu|vanaf nu|niet langer)|vanaf nu (?:ben|zul|moet|reageer)|ik wil dat (?:je|jij|u)|doe alsof|gedraag je als|stel je voor dat je|je nieuwe (?:taak|rol)",
    ),
    Language(
        "pl",
        r"zignoruj\w*|ignoruj\w*|zapomni\w*|pomin\w*|nie zwracaj uwagi|odrzuc",
        r"poprzedni\w*|wczesniejsz\w*|powyzsz\w*|wszystk\w*|wszelki\w*|dotychczasow\w*|swoj\w*|twoj\w*",
        r"instrukcj\w*|polecen\w*|rozkaz\w*|zasad\w*|wytyczn\w*|prompt\w*|komend\w*|wiadomosc\w*|zadan\w*|kontekst\w*|co ",
        r"(?:jestes teraz|teraz jestes)|od teraz (?:jestes|bedziesz)|chce,? zebys|udawaj,? ze|zachowuj sie jak|wyobraz sobie,? ze jestes|twoje nowe zadanie",
    ),
    Language(
        "hr",
        r"zaboravi\w*|ignoriraj\w*|ignorisi\w*|zanemari\w*|prezri|pozabi\w*",
        r"prethodn\w*|prijasnj\w*|ranij\w*|gornj\w*|sv[eai]\b|svih|dosadasnj\w*|sto (?:si|sam)|prejsnj\w*|vse|gore|pre ",
        r"instrukcij\w*|uput\w*|naredb\w*|naredjenj\w*|pravil\w*|zadat\w*|poruk\w*|informacij\w*|rekao|rekla|kontekst\w*|navodil\w*|naloge?|prompt\w*",
        r"(?:sada si|ti si sada)|od sada (?:si|ces|budi)|zelim da|ponasaj se kao|pretvaraj se|zamisli da si|tvoj novi zadatak",
    ),
    Language(
        "tr",
        r"onceki|yukaridaki|tum|butun|daha once\w*|verilen",
        r"(?:talimat|komut|yonerge|kural|mesaj|gorev|emir|sey)\w*",
        r"yok say\w*|unut\w*|gormezden gel\w*|goz ardi et\w*|dikkate alma\w*|bos ver\w*",
        r"artik sen|su andan itibaren|bundan (?:boyle|sonra)|gibi davran\w*|rol yap\w*|olmani istiyorum",
    ),
    Language(
        "ru",
        r"игнорир\pL*|игнорируй\pL*|игнорируйте|проигнорируй\pL*|забудь\pL*|забыть|не обращай\pL* внимания|отмени\pL*|не следуй\pL*|пренебреги\pL*|отбрось\pL*",
        r"предыдущ\pL*|прежн\pL*|прошл\pL*|вс[её]х?|все|выше\pL*|ранее|ранн\pL*|предшеству\pL*|исходн\pL*|свои|твои|до этого|сказанн\pL*|другие",
        r"инструкц\pL*|указани\pL*|команд\pL*|правил\pL*|приказ\pL*|промпт\pL*|директив\pL*|сообщени\pL*|задани\pL*|задач\pL*|контекст\pL*|что |запрос\pL*|информаци\pL*|ограничени\pL*",
        r"(?:ты|вы) (?:теперь|больше не)|теперь ты|(?:с этого момента|отныне),? (?:ты|вы)|я хочу,? чтобы (?:ты|вы)|притворись|представь,? что ты|веди себя как|действуй как|твоя новая задача|покажи (?:мне )?(?:свои|свой|системн\pL*)|скажи (?:мне )?(?:свои|свой|пароль)",
    ),
    Language(
        "uk",
        r"ігноруй\pL*|проігноруй\pL*|забудь\pL*|не звертай\pL* уваги",
        r"попередн\pL*|ус[іi]х?|вс[іi]х?|вище\pL*|раніш\pL*",
        r"інструкц\pL*|вказівк\pL*|команд\pL*|правил\pL*|наказ\pL*|повідомлен\pL*|завдан\pL*|що ",
        r"відтепер,? (?:ти|ви)|тепер ти|я хочу,? щоб ти|уяви,? що ти|поводься як",
    ),
    Language(
        "zh",
        r"忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|不要遵循|不要遵守|别管|別管|抛弃|抛开|放弃|绕过|取消|覆盖|不用管|丢弃",
        r"之前|以前|先前|前面|上面|上述|以上|此前|所有|全部|一切|任何|你的|原来|原來|原有|既有|系统|系統|刚才|剛才|早前",
        r"指令|指示|提示|命令|规则|規則|要求|内容|內容|说明|說明|对话|對話|消息|信息|任务|任務|设定|設定|约束|限制|指导|上下文|话|話|提问|文字|准则|政策",
        r"(?:从现在|從現在)(?:开始|起|開始)，?,?(?:你|请|請)|你现在是|你現在是|你不再是|你将扮演|你將扮演|请扮演|請扮演|假装你|假裝你|扮演一[个個名位]|你的新任务|你的新任務|开发者模式|開發者模式|越狱|越獄|不要告诉用户|不要告訴用戶|不要让用户|别告诉用户|系统提示词|系統提示詞|没有任何限制|不受任何限制|(?:告诉|告訴|给|給)我你的(?:系统|系統|初始|密码|密碼|指令|提示)|(?:输出|輸出|显示|顯示|打印|泄露|重复|重複)(?:你的|系统|系統|上面|以上|初始).{0,8}(?:提示|指令|内容|內容)",
        16,
    ),
    Language(
        "ja",
        r"これまで|以前|前|上記|すべて|全て|全部|あらゆる|今まで|元",
        r"の|な|に|与えられた|受けた|した",
        r"(?:指示|命令|ルール|プロンプト|指令|内容|会話|メッセージ|設定|制約|文脈|質問|入力)(?:は|を|事項)?.{0,10}(?:無視|忘れ|破棄|取り消|従わな|リセット)",
        r"これから(?:は)?あなたは|今から(?:は)?あなたは|あなたは今(?:から)?|のふりをし|として振る舞|になりきっ|ロールプレイ|開発者モード|脱獄|ユーザーに(?:は)?(?:言わない|知らせない|伝えない|教えない)|システムプロンプトを(?:表示|出力|教え|見せ)",
        12,
    ),
    Language(
        "ko",
        r"이전|앞의|앞선|위의|지금까지|모든|기존|원래|그동안",
        r"의|에|모든|주어진|받은|내린|한|했던|\s",
        r"(?:지시|명령|지침|규칙|프롬프트|내용|대화|메시지|설정|말|요청).{0,8}(?:무시|잊어|잊고|잊으|따르지|버려|취소)",
        r"지금부터 (?:너는|당신은|넌|나는|너의)|이제부터 (?:너는|당신은|넌|너의)|인 척|처럼 행동|역할을 (?:해|맡|수행)|개발자 모드|탈옥|사용자에게 (?:알리지|말하지)|시스템 프롬프트를 (?:보여|출력|알려|공개)",
        14,
    ),
    Language(
        "ar",
        r"تجاهل\pL*|انس\pL*|أنس\pL*|لا تتبع|اترك|اهمل|أهمل|تجاوز",
        r"السابق\pL*|اعلاه|أعلاه|جميع|كل|كافة|المذكور\pL*|قبل|الاصلي\pL*|ما ",
        r"التعليمات|تعليمات\pL*|الأوامر|اوامر|أوامر|التوجيهات|القواعد|الرسائل|المهام|السياق|المطالبات|قلته|قيل|الإرشادات",
        r"من الان فصاعدا|من الآن فصاعدا|انت الان|أنت الآن|اريدك ان|أريدك أن|تظاهر بأنك|تصرف (?:كأنك|وكأنك|مثل)|لا تخبر المستخدم|مهمتك الجديدة",
    ),
    Language(
        "hi",
        r"पिछल\S*|पहले|ऊपर|सभी|सारे|पूर्व",
        r"\S*",
        r"(?:निर्देश|आदेश|नियम|संदेश|बात|प्रॉम्प्ट|जानकारी)\S*.{0,20}(?:अनदेखा|नजरअंदाज|नज़रअंदाज|भूल|उपेक्षा|इग्नोर)",
        r"अब (?:से )?(?:तुम|आप)|मैं चाहता हूं कि (?:तुम|आप)|का नाटक कर|उपयोगकर्ता को (?:मत|न) बता",
        24,
    ),
    Language(
        "vi",
        r"bo qua|quen (?:di|het|tat ca)|phot lo|khong (?:lam theo|tuan theo)",
        r"truoc|tren|tat ca|moi|ban dau|cua ban",
        r"huong dan|chi (?:thi|dan)|lenh|quy tac|yeu cau|noi dung|tin nhan|nhiem vu|prompt",
        r"(?:ke )?tu bay gio,? ban|ban bay gio la|toi muon ban|gia vo|hay dong vai|nhiem vu moi cua ban",
    ),
    Language(
        "id",
        r"abaikan|lupakan|jangan (?:ikuti|hiraukan)|hiraukan",
        r"sebelum\w*|di atas|semua|seluruh|terdahulu|awal",
        r"instruksi|perintah|petunjuk|aturan|arahan|pesan|tugas|konteks|prompt",
        r"mulai sekarang,? (?:kamu|anda)|sekarang kamu adalah|saya ingin (?:anda|kamu)|berpura-?pura|bertindaklah sebagai",
    ),
)


def language_rules() -> tuple[Rule, ...]:
    """Two rules a language: to ignore what was before, and to be somebody else."""
    rules: list[Rule] = []
    for one in LANGUAGES:
        gap = _gap(one.gap // 2)
        ignore, before, orders = (f"(?:{part})" for part in (one.ignore, one.before, one.orders))
        pattern = rf"{ignore}{gap}(?:{before}{gap}{orders}|{orders}{gap}{before})"
        rules.append(
            Rule(f"override.{one.code}", "instruction_override", 60, _bounded(pattern, one))
        )
        rules.append(
            Rule(f"persona.{one.code}", "persona", 50, _bounded(f"(?:{one.persona})", one))
        )
    return tuple(rules)


def _gap(most: int) -> str:
    """So many characters of one sentence, which ends with a full stop of Chinese too."""
    return rf"[^.!?。！？]{{0,{most}}}"


def _bounded(pattern: str, language: Language) -> str:
    """The border of a word, for letters that RE2 knows as such."""
    return rf"\b{pattern}" if language.ignore.isascii() else pattern
