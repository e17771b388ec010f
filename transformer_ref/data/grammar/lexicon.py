"""The words of the built-in corpus, as tables.

A noun is written "english italian italian-plural gender". Its *kind* (the name of its table) says which verbs
and adjectives make sense with it. The kinds in `CUE_KINDS` are groups of nine cue nouns, which tell the sense of
an ambiguous word. An underscore stands for a space.
"""

NOUNS = {
    "person": """
        teacher insegnante insegnanti m; student studente studenti m; friend amico amici m;
        doctor medico medici m; child bambino bambini m; psychologist psicologo psicologi m;
        neighbor vicino vicini m; engineer ingegnere ingegneri m; nurse infermiera infermiere f;
        cook cuoco cuochi m; colleague collega colleghi m; artist artista artisti m""",
    "stranger": """
        boy ragazzo ragazzi m; girl ragazza ragazze f; woman donna donne f; man uomo uomini m;
        actress attrice attrici f; scientist scienziato scienziati m; tourist turista turisti m""",
    "kin": """
        brother fratello fratelli m; sister sorella sorelle f; uncle zio zii m; aunt zia zie f;
        son figlio figli m; daughter figlia figlie f; cousin cugino cugini m; grandmother nonna nonne f;
        grandfather nonno nonni m""",
    "name": """
        Anna Anna - f; Giulia Giulia - f; Sara Sara - f; Elena Elena - f; Marco Marco - m; Luca Luca - m;
        Paolo Paolo - m; Andrea Andrea - m""",
    "food": """
        cake torta torte f; pizza pizza pizze f; orange arancia arance f; sandwich panino panini m;
        egg uovo uova m/f; cheese formaggio formaggi m; strawberry fragola fragole f;
        cherry ciliegia ciliegie f; peach pesca pesche f; fig fico fichi m; mushroom fungo funghi m;
        salad insalata insalate f; soup zuppa zuppe f; yogurt yogurt yogurt m; cookie biscotto biscotti m;
        steak bistecca bistecche f""",
    "drink": """
        water acqua - f; coffee caffè - m; milk latte - m; wine vino - m; beer birra - f; juice succo - m;
        tea tè - m; lemonade limonata - f""",
    "thing": """
        umbrella ombrello ombrelli m; backpack zaino zaini m; mirror specchio specchi m;
        knife coltello coltelli m; watch orologio orologi m; gift regalo regali m; photo foto foto f;
        bicycle bicicletta biciclette f; lamp lampada lampade f; toy giocattolo giocattoli m;
        ball palla palle f; guitar chitarra chitarre f; necklace collana collane f; ring anello anelli m;
        picture quadro quadri m; newspaper giornale giornali m; towel asciugamano asciugamani m""",
    "clothes": """
        shoe scarpa scarpe f; jacket giacca giacche f; hat cappello cappelli m; skirt gonna gonne f;
        shirt camicia camicie f; boot stivale stivali m; coat cappotto cappotti m;
        scarf sciarpa sciarpe f""",
    "text": """
        book libro libri m; letter lettera lettere f; poem poesia poesie f; novel romanzo romanzi m;
        story storia storie f; message messaggio messaggi m; diary diario diari m""",
    "closable": """
        door porta porte f; box scatola scatole f; suitcase valigia valigie f; bag borsa borse f;
        drawer cassetto cassetti m; gate cancello cancelli m; closet armadio armadi m""",
    "surface": """
        table tavolo tavoli m; chair sedia sedie f; shelf scaffale scaffali m; bed letto letti m;
        sofa divano divani m; desk scrivania scrivanie f; bench panchina panchine f""",
    "place": """
        garden giardino giardini m; school scuola scuole f; park parco parchi m; square piazza piazze f;
        stadium stadio stadi m; shop negozio negozi m; station stazione stazioni f;
        hotel albergo alberghi m; restaurant ristorante ristoranti m; museum museo musei m;
        church chiesa chiese f; zoo zoo zoo m; library biblioteca biblioteche f; cinema cinema cinema m;
        theater teatro teatri m""",
    "animal": """
        dog cane cani m; cat gatto gatti m; horse cavallo cavalli m; bird uccello uccelli m;
        cow mucca mucche f; rabbit coniglio conigli m; squirrel scoiattolo scoiattoli m""",
    "device": """
        computer computer computer m; laptop portatile portatili m; tablet tablet tablet m;
        smartphone smartphone smartphone m; keyboard tastiera tastiere f; printer stampante stampanti f;
        monitor monitor monitor m; server server server m; workstation postazione postazioni f""",
    "building": """
        house casa case f; kitchen cucina cucine f; bedroom camera camere f; castle castello castelli m;
        apartment appartamento appartamenti m; cottage villetta villette f; attic soffitta soffitte f;
        room stanza stanze f; studio studio studi m""",
    "water": """
        river fiume fiumi m; lake lago laghi m; stream ruscello ruscelli m; canal canale canali m;
        pond stagno stagni m; waterfall cascata cascate f; bridge ponte ponti m; island isola isole f;
        mill mulino mulini m""",
    "business": """
        company azienda aziende f; office ufficio uffici m; ministry ministero ministeri m;
        director direttore direttori m; client cliente clienti m; lawyer avvocato avvocati m;
        secretary segretaria segretarie f; mayor sindaco sindaci m; judge giudice giudici m""",
    "sport": """
        player giocatore giocatori m; team squadra squadre f; coach allenatore allenatori m;
        referee arbitro arbitri m; champion campione campioni m; athlete atleta atleti m;
        captain capitano capitani m; goalkeeper portiere portieri m; winner vincitore vincitori m""",
    "vehicle": """
        car macchina macchine f; taxi taxi taxi m; truck camion camion m; bus autobus autobus m;
        ambulance ambulanza ambulanze f; jeep jeep jeep f""",
}
SCENERY_KINDS = ("place", "building", "water")  # mostly one at a time
UNOWNED_KINDS = ("stranger", "water")  # not said to be "my" or "their"
CUE_KINDS = ("device", "building", "water", "business", "sport")
ENGLISH_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "knife": "knives",
    "scarf": "scarves",
    "shelf": "shelves",
    "mouse": "mice",
}

# A verb is written "english english-past infinitive participle"; its table's name says which objects it takes.
TRANSITIVE_VERBS = {
    "any": """
        see saw vedere visto; remember remembered ricordare ricordato; draw drew disegnare disegnato;
        photograph photographed fotografare fotografato; look_for looked_for cercare cercato;
        find found trovare trovato""",
    "person stranger kin name animal": "help helped aiutare aiutato",
    "person stranger kin name sport": """
        meet met incontrare incontrato; thank thanked ringraziare ringraziato;
        wait_for waited_for aspettare aspettato""",
    "food": "eat ate mangiare mangiato",
    "food drink": "prepare prepared preparare preparato",
    "drink": "drink drank bere bevuto",
    "food drink thing clothes text": """
        buy bought comprare comprato; choose chose scegliere scelto; take took prendere preso;
        pay_for paid_for pagare pagato""",
    "thing clothes text device vehicle": "sell sold vendere venduto; lose lost perdere perso",
    "thing clothes text closable": "touch touched toccare toccato; forget forgot dimenticare dimenticato",
    "thing closable device surface": "break broke rompere rotto; repair repaired riparare riparato",
    "clothes closable surface building": "clean cleaned pulire pulito",
    "clothes": "wear wore indossare indossato",
    "text": """
        write wrote scrivere scritto; finish finished finire finito; translate translated tradurre tradotto""",
    "closable": "open opened aprire aperto; close closed chiudere chiuso",
    "place building water": "visit visited visitare visitato",
    "vehicle": "park parked parcheggiare parcheggiato",
    "device": """
        charge charged caricare caricato; install installed installare installato;
        connect connected collegare collegato""",
    "person stranger kin name business": "convince convinced convincere convinto",
    "animal": "catch caught catturare catturato",
    "building": "rent rented affittare affittato",
    "water": "cross crossed attraversare attraversato",
    "business": "consult consulted consultare consultato",
    "sport": "applaud applauded applaudire applaudito",
    "place building": "manage managed gestire gestito",
    "": "leave left lasciare lasciato",
}
# The preposition that follows, and the kinds of noun after it.
INTRANSITIVE_VERBS = {
    ("essere", "at place"): "arrive arrived arrivare arrivato",
    ("essere", "to place"): "go went andare andato; return returned tornare tornato",
    ("essere", "from place"): "come came venire venuto",
    ("essere", "in place"): "stay stayed restare restato",
    ("avere", "in place"): """
        sleep slept dormire dormito; work worked lavorare lavorato; study studied studiare studiato;
        play played giocare giocato""",
    ("avere", "with person kin name"): "talk talked parlare parlato",
}

# "english italian", in the place where Italian puts the adjective.
ADJECTIVES_BEFORE = """
        old vecchio; new nuovo; small piccolo; big grande; beautiful bello; good buono; young giovane"""
ADJECTIVES_AFTER = """
        red rosso; black nero; white bianco; green verde; yellow giallo; blue blu; fast veloce;
        strange strano; expensive costoso; Italian italiano; German tedesco; tired stanco; rich ricco;
        long lungo; friendly simpatico; elegant elegante; heavy pesante; modern moderno; dirty sporco;
        famous famoso; fresh fresco; cold freddo; delicious delizioso; tall alto; ancient antico;
        quiet tranquillo; practical pratico; happy felice; strong forte"""
ADJECTIVES_OF_KIND = {
    "person": "old young good rich friendly elegant Italian German famous tall tired happy strong",
    "stranger": "old young good rich elegant Italian German famous tall tired happy strong",
    "kin": "old young rich friendly elegant famous tall tired happy",
    "food": "good small big fresh cold delicious Italian",
    "drink": "good fresh cold Italian delicious",
    "thing": "old new small big beautiful red black white green yellow blue strange expensive heavy elegant "
    "dirty practical",
    "clothes": "old new beautiful red black white green yellow blue elegant long dirty Italian practical expensive",
    "text": "old new long beautiful strange famous Italian German",
    "closable": "old new small big beautiful red black white green yellow blue heavy modern dirty",
    "surface": "old new small big white black elegant modern dirty practical",
    "place": "old new small big beautiful famous ancient modern quiet Italian elegant",
    "animal": "old young small big beautiful white black strange fast tired strong",
    "device": "old new small big fast expensive modern black white practical quiet strong",
    "building": "old new small big beautiful elegant modern ancient quiet strong",
    "water": "small big beautiful quiet famous ancient",
    "business": "old new famous rich Italian German quiet strong",
    "sport": "young old new good famous strange tired Italian German fast quiet strong",
    "vehicle": "old new small big fast red black white green yellow blue expensive modern Italian German",
}
# What an adjective of the list above becomes with nouns of a kind.
ADJECTIVE_SENSES = {
    "quiet": {"device": "silenzioso", "sport": "silenzioso"},
    "strong": {"device": "potente", "building": "solido"},
}

# word: how its senses attach to a cue ("the bank near the river"), the verbs that fit every sense besides those that
# fit anything, the adjectives that fit every sense, and for each group of cues (kinds joined by "+") the Italian noun.
AMBIGUOUS = {
    "windows": (
        "for, because of",
        "buy sell choose",
        "old new beautiful",
        {"device": "Windows brand", "building": "finestra finestre f"},
    ),
    "apple": (
        "near, behind, in front of",
        "buy sell choose forget",
        "big small red green",
        {"device": "Apple Apple m", "building": "mela mele f"},
    ),
    "mouse": (
        "of, near, behind",
        "lose touch",
        "big small black white old",
        {"device": "mouse mouse m", "water": "topo topi m"},
    ),
    "bank": (
        "near, in front of",
        "visit choose",
        "old big small beautiful famous",
        {"water": "riva rive f", "business": "banca banche f"},
    ),
    "bat": (
        "of, near, behind",
        "touch",
        "big small black old strange",
        {"water": "pipistrello pipistrelli m", "sport": "mazza mazze f"},
    ),
    "spring": (
        "near, behind",
        "touch clean",
        "old new big small",
        {"water": "sorgente sorgenti f", "device": "molla molle f"},
    ),
    "pitch": (
        "for, of",
        "prepare choose",
        "new beautiful big long",
        {"sport": "campo campi m", "business": "presentazione presentazioni f"},
    ),
    "court": (
        "near, in front of",
        "visit choose",
        "old new big modern famous",
        {"sport": "campo campi m", "business": "tribunale tribunali m"},
    ),
    "keys": (
        "of, near",
        "touch clean lose",
        "old new small black white",
        {"device": "tasto tasti m", "building": "chiave chiavi f"},
    ),
    "board": ("of, for", "choose", "old new big", {"device": "scheda schede f", "business": "consiglio consigli m"}),
    "trunk": (
        "of, near, behind",
        "touch clean",
        "old big small dirty long",
        {"building": "baule bauli m", "water": "tronco tronchi m"},
    ),
    "plant": (
        "of, near, behind",
        "buy sell visit",
        "old new big small beautiful",
        {"water": "pianta piante f", "business": "stabilimento stabilimenti m"},
    ),
    "seal": (
        "near, behind, in front of",
        "touch",
        "old big small strange",
        {"water": "foca foche f", "business": "sigillo sigilli m"},
    ),
    "branch": (
        "of, near, behind",
        "choose",
        "big small new long",
        {"water": "ramo rami m", "business": "filiale filiali f"},
    ),
    "fan": (
        "of, near, behind",
        "choose",
        "old new small fast",
        {"device": "ventola ventole f", "sport": "tifoso tifosi m"},
    ),
    "lock": (
        "of, near, behind",
        "clean touch",
        "old new big small",
        {"building": "serratura serrature f", "water": "chiusa chiuse f"},
    ),
}
# Verbs that determine the sense by themselves: "I closed the windows."
TELLING_VERBS = {
    "windows": {"device": "install", "building": "close open"},
    "apple": {"device": "charge", "building": "eat"},
    "mouse": {"device": "connect charge", "water": "catch"},
    "bank": {"business": "convince manage"},
    "bat": {"water": "catch", "sport": "break"},
    "pitch": {"business": "write finish"},
    "court": {"business": "convince"},
    "keys": {"device": "repair", "building": "forget"},
    "board": {"device": "install connect", "business": "convince"},
    "trunk": {"building": "open close"},
    "plant": {"business": "manage"},
    "seal": {"water": "catch", "business": "break"},
    "branch": {"water": "break", "business": "manage"},
    "fan": {"device": "install repair", "sport": "thank meet"},
    "lock": {"building": "break open"},
}

PREPOSITIONS = {
    "in": "in",
    "to": "a",
    "at": "a",
    "from": "da",
    "on": "su",
    "with": "con",
    "for": "per",
    "of": "di",
    "near": "vicino a",
    "behind": "dietro",
    "in front of": "davanti a",
    "because of": "a causa di",
}
# (English, person, number, gender): Italian drops them; the speaker and the listener are taken as masculine.
PRONOUNS = (
    ("I", 1, "s", "m"),
    ("you", 2, "s", "m"),
    ("he", 3, "s", "m"),
    ("she", 3, "s", "f"),
    ("we", 1, "p", "m"),
    ("they", 3, "p", "m"),
)
TIMES = {
    "past": (
        ("yesterday", "ieri"),
        ("last night", "ieri sera"),
        ("this morning", "stamattina"),
        ("last week", "la settimana scorsa"),
    ),
    "present": (
        ("today", "oggi"),
        ("every day", "ogni giorno"),
        ("every morning", "ogni mattina"),
        ("on Sundays", "la domenica"),
    ),
    "future": (("tomorrow", "domani"), ("next year", "l'anno prossimo"), ("soon", "presto"), ("tonight", "stasera")),
}
