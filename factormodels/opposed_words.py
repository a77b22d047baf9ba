"""Words that turn a claim round: negations, prefixes that negate, and pairs such as before, after.

Claims are compared by their words only in the languages of `NEGATIONS`. A trailing ``*`` stands for
any ending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from factormodels.languages import word_set

Side = tuple[int, int]
"""A group of opposites, by its index, and a side of it."""

_WORDS_KEPT = 65536
"""Words whose classes are kept, since a claim is compared with many others."""


def _sets(**words: str) -> Mapping[str, frozenset[str]]:
    return {code: word_set(text) for code, text in words.items()}


NEGATIONS: Mapping[str, frozenset[str]] = _sets(
    en="""not no never none neither nor nobody nothing nowhere cannot without hardly scarcely
    barely false* untrue incorrect* wrong* deny denies denied denying refus* fail* lack* non t dont
    doesnt didnt isnt wasnt arent werent hasnt havent hadnt wont cant""",
    de="""nicht nichts kein* nie niemals niemand* nirgend* ohne weder noch kaum falsch* verneint*
    bestritt* bestreitet leugnet* verweiger* außer""",
    fr="""ne n pas jamais aucun* nul nulle personne rien sans ni guère non faux fausse* nie nia nié
    refus*""",
    es="""no nunca jamás sin ningún ninguno ninguna nadie nada ni tampoco apenas fals* negó niega
    rechaz*""",
    it="""non mai nessun* niente nulla senza né neanche nemmeno neppure mica fals* negò nega
    rifiut*""",
    pt="""não nunca jamais sem nenhum* ninguém nada nem tampouco fals* negou recus*""",
    nl="""niet niets geen nooit niemand nergens zonder noch nauwelijks onwaar vals* ontken*
    weiger*""",
    pl="""nie nigdy nikt nikogo nic niczego bez żaden żadna żadne żadnego żadnej ani fałsz*
    zaprzecz* odmów*""",
    cs="""ne není nejsou nikdy nikdo nic bez žádný žádná žádné žádného ani nikoli falešn* popřel*
    odmít*""",
    sk="""nie nikdy nikto nič bez žiadny žiadna žiadne žiadneho ani nikoho falošn* poprel*
    odmiet*""",
    da="""ikke ingen intet aldrig uden hverken heller næppe nægte* falsk* forkert*""",
    no="""ikke ingen intet aldri uten verken heller neppe nekte* falsk* feil*""",
    sv="""inte icke ej ingen inget inga aldrig utan varken knappt neka* falsk* fel*""",
    ru="""не нет ни без никогда никто никого никому ничто ничего нигде никакой никакая никакие
    никаких нельзя вряд ложн* неверно отрица* отказ*""",
    uk="""не ні ані без ніколи ніхто нікого ніщо нічого ніде жоден жодна жодного немає хибн*
    запереч* відмов*""",
    bg="""не няма нямаше нямат нито без никога никой никого нищо никъде никакъв никаква никакво
    невярно отказ*""",
    el="""δεν δε μη μην όχι ποτέ κανείς κανένας καμία κανένα τίποτα χωρίς ούτε πουθενά ψευδ*
    αρνήθηκ*""",
    hy="""չէ չի չեն չէր չէին ոչ երբեք ոչինչ առանց մի""",
    kk="""емес жоқ ешқашан ешкім ешнәрсе""",
    hi="""नहीं न मत बिना बगैर गलत झूठ* इनकार""",
    mr="""नाही नाहीत नव्हता नव्हती नव्हते न नको विना शिवाय कधीही खोटे""",
    ur="""نہیں نہ مت بغیر بنا غلط انکار""",
    fa="""نه نیست نیستند نبود نبودند هرگز هیچ بدون بی نشد نشده نکرد نکرده ندارد نداشت غلط""",
    ar="""لا لم لن ليس ليست ليسوا غير بلا دون بدون ما عدم أبدا أبداً قط سوى ولا ولم ولن وليس فلا
    فلم فلن فليس ينفي نفى رفض*""",
    zh="不 没 沒 非 无 無 未 别 勿 否 莫 毋 假 误 除",
    ja="""ない なかっ なく ませ ぬ ず 非 不 無 未 否 誤""",
)
"""Negations by language; those of Chinese and Japanese are parts of the text."""

_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "en": ("un", "in", "im", "il", "ir", "dis", "non", "mis", "de", "anti"),
    "de": ("un", "nicht", "miss", "anti", "ent", "in"),
    "fr": ("in", "im", "il", "ir", "dé", "dés", "mé", "més", "non", "anti"),
    "es": ("in", "im", "i", "des", "dis", "anti", "no"),
    "it": ("in", "im", "il", "ir", "dis", "s", "non", "anti"),
    "pt": ("in", "im", "i", "des", "dis", "não", "anti"),
    "nl": ("on", "niet", "anti", "mis", "ont"),
    "pl": ("nie", "bez", "anty"),
    "cs": ("ne", "bez"),
    "sk": ("ne", "bez"),
    "da": ("u", "mis", "ikke"),
    "no": ("u", "mis", "ikke"),
    "sv": ("o", "miss", "icke"),
    "ru": ("не", "без", "бес", "анти"),
    "uk": ("не", "без", "анти"),
    "bg": ("не", "без", "бес", "анти"),
    "el": ("α", "αν", "μη", "αντι"),
    "hy": ("ան", "չ", "դժ"),
    "kk": ("бей",),
    "hi": ("अ", "अन", "बे", "ग़ैर", "गैर", "ना", "नि"),
    "mr": ("अ", "अन", "बे", "गैर", "ना"),
    "ur": ("نا", "بے", "غیر"),
    "fa": ("ن", "نا", "بی", "غیر"),
    "ar": (),
}
"""Beginnings that make a word its opposite."""

_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "en": ("less",),
    "de": ("los", "lose", "losen", "loser", "loses", "frei", "freie"),
    "nl": ("loos", "loze"),
    "sv": ("lös", "löst", "lösa"),
    "da": ("løs", "løst", "løse"),
    "no": ("løs", "løst", "løse"),
    "kk": ("сыз", "сіз", "мады", "меді", "бады", "беді", "пады", "педі", "маған", "меген"),
    "hy": ("չ",),
}
"""Endings that do the same."""

_SHORTEST_STEM = 3

_PAIRS: Mapping[str, str] = {
    "en": """before prior until | after since following ; more most over exceed* above | less fewer
    least fewest under below beneath ; first early earl* | last final* late latest later ; north* |
    south* | east* | west* ; won win wins winning winner beat defeat* victor* | lost lose loses
    losing loser ; increas* rose rise* grew grow* gain* rais* | decreas* fell fall* shrank shrink*
    declin* drop* lower* ; older elder oldest eldest | younger youngest ; begin* began begun start*
    open* found* | end ends ended ending finish* clos* stop* ceas* dissol* ; bigger larger greater
    largest biggest greatest longer longest higher highest taller tallest | smaller smallest
    shorter shortest lower lowest ; born birth | died dead death ; mother* | father* ; husband |
    wife ; son sons | daughter* ; brother* | sister* ; best better | worst worse ; all every
    everyone always each | some sometimes few ; left | right ; many | few ; buy bought buys
    purchas* | sell sold sells ; arriv* enter* join* | depart* leave leaves ; inside within |
    outside ; male man men boy* | female woman women girl* ; accept* allow* permit* approv* |
    reject* forbid* forbade ban banned prohibit* oppos* ; major majority | minor minority ; true |
    false untrue ; maximum max | minimum min ; import* | export* ; upper | lower ; into | out ;
    against | for""",
    "de": """vor vorher bevor bis | nach nachdem seit danach ; mehr meist* über oberhalb | weniger
    wenigst* unter unterhalb ; erst* früh* | letzt* spät* ; nord* nörd* | süd* | ost* öst* | west*
    ; gewann gewonnen gewinn* sieg* besieg* schlug | verlor verloren verlier* unterlag ; stieg
    steig* gestieg* wuchs wachs* gewachs* zunahm* erhöh* vermehr* | sank sink* gesunk* fiel fall*
    gefall* schrumpf* abnahm* senk* verminder* verringer* ; älter* ältest* | jünger* jüngst* ;
    begann beginn* begonn* anfang* anfing eröffn* gründ* gegründet* | endet* ende beendet* aufhör*
    schloss schließ* geschlossen aufgelöst* ; größer* größt* länger* längst* höher* höchst* |
    kleiner* kleinst* kürzer* kürzest* niedrig* niedrigst* tiefer* ; geboren geburt* | starb
    gestorben tod* tot verstarb verstorben ; mutter | vater ; sohn söhne | tochter töchter ; bruder
    brüder | schwester* ; besser* best* | schlechter* schlechtest* schlimm* ; alle aller immer
    jeder jede jedes | manche einige manchmal ; links linke* | rechts rechte* ; kauft* kaufen
    gekauft | verkauf* ; mann männer | frau frauen ; höchstens maximal* | mindestens minimal* ;
    ober* | unter*""",
    "fr": """avant jusque jusqu | après depuis ; plus davantage dessus | moins dessous ; premi* tôt
    | derni* tard* ; nord septentrion* | sud méridion* | orient* | ouest occident* ; gagn* vainqu*
    remport* batt* victoi* | perd* défait* ; augment* croît crois* hausse mont* accr* | diminu*
    baiss* décr* chut* ; aîné* vieux vieille âgé* | cadet* jeune* ; commenc* début* ouvr* ouvert*
    fond* | fin* termin* achev* ferm* cess* dissou* ; grand* long* haut* supérieur* | petit* court*
    bas basse* inférieur* ; né née naquit naiss* | mort* mourut décéd* ; mère | père ; fils |
    fille* ; frère* | sœur* soeur* ; meilleur* mieux | pire* pis ; tous toutes toujours chaque |
    certains quelques parfois ; gauche | droite ; achet* acqu* | vend* ; homme* | femme*""",
    "es": """antes hasta | después tras ; más encima | menos debajo ; primer* tempran* | últim*
    tard* ; norte norteñ* septentrion* | sur sureñ* meridion* | oriental* | oeste occident* ; ganó
    gan* venci* derrot* | perdi* perd* ; aument* subi* creci* crec* | disminu* baj* reduj* cay*
    decreci* ; mayor* viej* | menor* joven* ; comenz* empez* inici* abri* fund* | termin* acab*
    finaliz* cerr* ces* disolvi* ; grande* larg* alt* superior* | pequeñ* cort* inferior* ; naci*
    nacimiento | muri* muert* falleci* ; madre | padre ; hijo hijos | hija hijas ; hermano hermanos
    | hermana hermanas ; mejor* | peor* ; todos todas siempre cada | algunos algunas ; izquierda |
    derecha ; compr* | vend* ; hombre* | mujer*""",
    "it": """prima fino | dopo poi ; più sopra oltre | meno sotto ; prim* presto | ultim* tardi ;
    nord settentrion* | sud meridion* | est orient* | ovest occident* ; vinse vinto vinc* sconfi*
    batt* | perse perso perd* ; aument* crebbe cresc* sal* | diminu* cal* scese ridus* ; anzian*
    vecchi* | giovan* ; inizi* cominci* apr* aper* fond* | fin* termin* chius* chiu* cess* sciol* ;
    grand* lung* alt* maggior* superior* | piccol* cort* bass* minor* inferior* ; nacque nato nata
    nasc* | morì morto morta mor* ; madre | padre ; figlio figli | figlia figlie ; fratello
    fratelli | sorella sorelle ; miglior* meglio | peggior* peggio ; tutti tutte sempre ogni |
    alcuni alcune ; sinistra | destra ; compr* acquist* | vend* ; uomo uomini | donna donne""",
    "pt": """antes até | depois após ; mais acima | menos abaixo ; primeir* cedo | últim* tard* ;
    norte setentrion* | sul meridion* | leste orient* | oeste ocident* ; ganh* venc* derrot* |
    perd* ; aument* subi* cresc* | diminu* baix* reduz* cai* ; velh* | jove* nov* ; começ* inici*
    abri* fund* | termin* acab* fech* encerr* cess* dissolv* ; maior* grande* long* alt* superior*
    | menor* pequen* curt* inferior* ; nasce* nascid* nasci* | morr* mort* falec* ; mãe | pai ;
    filho filhos | filha filhas ; irmão irmãos | irmã irmãs ; melhor* | pior* ; todos todas sempre
    cada | alguns algumas ; esquerda | direita ; compr* | vend* ; homem homens | mulher*""",
    "nl": """voor voordat tot | na nadat sinds ; meer meest* boven | minder minst* onder ; eerst*
    vroeg* | laatst* laat* later ; noord* | zuid* | oost* | west* ; won wint winn* gewonnen
    versloeg versla* | verloor verlor* verlies* ; steeg stijg* gestegen groei* toenam* verhoog* |
    daal* gedaald zakt* afnam* kromp verlaag* ; ouder* oudst* | jonger* jongst* ; begon begin*
    begonnen start* open* opgericht* stichtte | eindig* einde sloot gesloten stopte* opgeheven ;
    groter* grootst* langer* hoger* | kleiner* kleinst* korter* lager* ; geboren geboorte* | stierf
    gestorven overle* dood ; moeder | vader ; zoon zonen | dochter* ; broer* | zus* zuster* ;
    beter* best* | slechter* slechtst* ; alle altijd elke | sommige soms ; links linker* | rechts
    rechter* ; koopt kocht* gekocht | verko* ; man mannen | vrouw*""",
    "ru": """до перед прежде | после затем ; больше более выше свыше над | меньше менее ниже под ;
    перв* рано раньш* ранн* | последн* поздн* поздно ; север* | юг юге юга юж* | восток* восточ* |
    запад* ; выигр* побед* победи* | проигр* пораж* ; увелич* вырос* возрос* рост* повыс* | уменьш*
    снизи* упал* сократ* пониз* ; старше старш* | младше младш* моложе ; нача* начин* откры*
    основа* | закон* заверш* закры* прекра* окончи* распу* ; больш* длинн* высок* | меньш* коротк*
    низк* мал* ; роди* рожд* | умер* смерт* скончал* ; мать матер* | отец отц* ; сын* | дочь дочер*
    ; брат* | сестр* ; лучш* | худш* хуже ; все всегда каждый | некотор* иногда ; лев* слева |
    прав* справа ; купи* покуп* | прода* ; мужчин* | женщин*""",
    "pl": """przed zanim | po ; więcej bardziej ponad powyżej nad | mniej poniżej pod ; pierwsz*
    wcześn* | ostatn* późn* ; północ* | południ* | wschód wschod* | zachód zachod* ; wygra*
    zwycięż* pokona* | przegra* ; wzrós* wzros* rós* zwiększ* | spad* zmala* zmniejsz* obniż* ;
    starsz* | młodsz* ; zaczę* zaczą* rozpocz* otwar* założ* | koń* skończ* zamkn* przesta*
    rozwiąz* ; większ* duż* dłuż* wyższ* | mniejsz* mał* krótsz* niższ* ; urodz* narodz* | zmar*
    umar* śmier* ; matk* | ojc* ojciec ; syn syna synowie | córk* ; brat brata bracia | siostr* ;
    leps* najleps* | gors* najgors* ; wszys* zawsze każd* | niektór* czasem ; lew* | praw* ; kupi*
    | sprzeda* ; mężczyzn* | kobiet*""",
    "cs": """před než | po ; více víc nad přes | méně míň pod ; prvn* brzy dřív* | posledn* pozd* ;
    sever* | jih* jižn* | východ* | západ* ; vyhr* zvítěz* porazil* | prohr* ; vzrost* vzrůst*
    rost* zvýš* | klesl* kles* sníž* ; starší | mladší ; zača* zahá* otevř* založ* | skonč* konec
    zavř* ukonč* zruš* ; větší delší vyšší velk* | menší kratší nižší mal* ; narod* | zemře* smrt*
    ; matk* | otec otc* ; syn syna | dcer* ; bratr* | sestr* ; lepší | horší ; koupil* |
    prodal*""",
    "sk": """pred kým | po ; viac nad | menej pod ; prv* skôr | posledn* neskôr ; sever* | juh*
    juž* | východ* | západ* ; vyhra* zvíťaz* porazil* | prehra* ; vzrást* rast* zvýš* | kles* zníž*
    ; starší | mladší ; zača* otvor* založ* | skonč* koniec zatvor* ukonč* zruš* ; väčš* dlhš*
    vyšš* | menš* kratš* nižš* ; narod* | zomre* smrť* ; matk* | otec otc* ; syn syna | dcér* ;
    brat brata | sestr* ; lepš* | horš* ; kúpil* | predal*""",
    "da": """før inden | efter siden ; mere flere mest over | mindre færre mindst under ; først*
    tidlig* | sidst* sen* ; nord* | syd* | øst* | vest* ; vandt vinde* slog besejre* | tabte tabe*
    ; steg stige* vokse* øge* | faldt falde* mindske* sank ; ældre ældst* | yngre yngst* ; begynd*
    start* åbne* grundlag* | slut* ende* lukke* ophør* ; større størst* længere højere | kortere
    lavere ; født fødsel* | døde død ; mor | far ; søn* | datter* ; bror* | søster* ; bedre bedst |
    værre værst ; købt* | solgt*""",
    "no": """før innen | etter siden ; mer flere mest over | mindre færre minst under ; først*
    tidlig* | sist* sen* ; nord* | sør* syd* | øst* | vest* ; vant vinne* slo beseir* | tapte tape*
    ; steg stige* vokse* øke* | falt falle* minske* sank ; eldre eldst* | yngre yngst* ; begyn*
    start* åpne* grunnla* | slut* ende* lukke* opphør* ; større størst* lengre høyere | kortere
    lavere ; født fødsel* | døde død ; mor | far ; sønn* | datter* ; bror* | søster* ; bedre best |
    verre verst ; kjøpt* | solgt*""",
    "sv": """före innan | efter sedan ; mer fler* mest över | mindre färre minst under ; först*
    tidig* | sist* sen* ; norr* nord* | söder* syd* | öst* | väst* ; vann vinn* besegra* slog |
    förlora* ; steg stig* växt* öka* | föll fall* minska* sjönk ; äldre äldst* | yngre yngst* ;
    börja* start* öppna* grunda* | sluta* ände* stäng* upphör* ; större störst* längre högre |
    kortare lägre ; född* föddes | dog död* ; mor moder | far fader ; son söner | dotter döttrar ;
    bror bröder | syster* ; bättre bäst | sämre sämst värre ; köpt* | sålde sålt*""",
    "uk": """перед | після ; більше понад вище над | менше нижче під ; перш* рано раніш* | останн*
    пізн* ; північ* | південь півден* | схід* схо* | захід* захо* ; вигра* перем* | програ* ; зріс*
    зрос* збільш* | зменш* впа* зниз* ; старш* | молодш* ; поча* відкри* заснова* | закінч* закри*
    припин* ; більш* | менш* ; народ* | помер* ; мати матер* | батьк* ; син* | дочк* доньк* ; брат*
    | сестр* ; краще кращ* | гірш*""",
    "bg": """преди | след ; повече над | по-малко малко под ; първ* рано | последн* късно ; север*
    | юг южн* | изток източн* | запад* ; спечел* победи* | загуб* ; увелич* нарас* | намал* спад* ;
    по-стар* старш* | по-млад* млад* ; започ* откри* основа* | завърш* закри* приключ* ; голям*
    дълъг висок* | малък малк* къс* нисък ; роден* роди* | почина* умр* умира* ; майк* | бащ* ;
    син* | дъщер* ; брат* | сестр* ; купи* | прода*""",
    "el": """πριν | μετά ; περισσότερ* πάνω άνω | λιγότερ* κάτω ; πρώτ* νωρίς | τελευταί* αργά ;
    βόρει* βορ* | νότι* νότ* | ανατολ* | δυτικ* δύσ* ; κέρδισ* νίκησ* | έχασ* ηττήθηκ* ; αυξ* αύξ*
    ανέβ* | μει* έπεσ* ; μεγαλύτερ* | μικρότερ* νεότερ* ; άρχισ* ξεκίνησ* άνοιξ* ίδρυσ* ιδρύθηκ* |
    τελείωσ* έκλεισ* σταμάτησ* ; γεννήθηκ* | πέθαν* ; μητέρα | πατέρα* ; γιος | κόρη ; αδελφός
    αδερφός | αδελφή αδερφή ; καλύτερ* | χειρότερ* ; αγόρασ* | πούλησ*""",
    "hy": """առաջ մինչև նախքան | հետո ; ավելի շատ | քիչ պակաս ; առաջին | վերջին ; հյուսիս* | հարավ*
    | արևելք* արևելյան | արևմուտք* արևմտյան ; հաղթ* | պարտ* ; ավելաց* աճ* | նվազ* ; ավագ մեծ |
    կրտսեր փոքր ; սկս* հիմն* | ավարտ* փակ* ; ծնվ* | մահաց* մեռ*""",
    "kk": """дейін бұрын | кейін соң ; көп артық жоғары | аз кем төмен ; бірінші алғаш* | соңғы ;
    солтүстік* | оңтүстік* | шығыс* | батыс* ; жеңді жеңіп | жеңілді ұтылды ; артты өсті көбей* |
    азай* кеміді төменде* ; үлкен аға | кіші іні ; баста* ашыл* құрыл* | аяқта* жабыл* бітті ;
    туған туды | қайтыс өлді""",
    "hi": """पहले पूर्व तक | बाद ; अधिक ज्यादा ज़्यादा ऊपर | कम नीचे ; पहला पहली प्रथम | अंतिम
    आखिरी आख़िरी ; उत्तर* | दक्षिण* | पूरब पूर्वी | पश्चिम* ; जीत* हराया | हार हारा हारी हारे ;
    बढ़* वृद्धि | घट* कमी गिर* ; बड़ा बड़ी बड़े | छोटा छोटी छोटे ; शुरू आरंभ खुला खुली स्थापित |
    समाप्त खत्म ख़त्म बंद ; जन्म जन्मा | मृत्यु मरा मरी निधन ; माता माँ | पिता ; बेटा पुत्र | बेटी
    पुत्री ; भाई | बहन ; खरीद* | बेच*""",
    "mr": """आधी पूर्वी पर्यंत | नंतर ; जास्त अधिक वर | कमी खाली ; पहिला पहिली पहिले प्रथम | शेवट*
    ; उत्तर* | दक्षिण* | पूर्व पूर्वेला | पश्चिम* ; जिंक* हरवले | हरला हरली हार ; वाढ* | घट* ; मोठा
    मोठी मोठे | लहान धाकटा धाकटी ; सुरू | बंद संप* ; जन्म* | मृत्यू निधन मेला ; आई | वडील ; मुलगा |
    मुलगी ; भाऊ | बहीण""",
    "ur": """پہلے قبل تک | بعد ; زیادہ اوپر | کم نیچے ; پہلا پہلی اول | آخری ; شمال* | جنوب* |
    مشرق* | مغرب* ; جیت* ہرایا | ہار ہارا ہاری ; بڑھ* اضافہ | گھٹ* کمی ; بڑا بڑی | چھوٹا چھوٹی ;
    شروع قائم | ختم بند ; پیدا | وفات انتقال مر ; ماں | باپ والد ; بیٹا | بیٹی ; بھائی | بہن ;
    خرید* | بیچ*""",
    "fa": """پیش قبل تا | پس بعد ; بیش بیشتر بالای بالا | کم کمتر زیر پایین ; نخست* اول اولین | آخر
    آخرین واپسین ; شمال* | جنوب* | شرق* خاور* | غرب* باختر* ; برد پیروز* | باخت شکست ; افزایش رشد |
    کاهش ; بزرگ* | کوچک* ; آغاز شروع تأسیس گشود | پایان تعطیل بست ; زاده متولد | درگذشت مرد ; مادر
    | پدر ; پسر | دختر ; برادر | خواهر ; خرید* | فروخت*""",
    "ar": """قبل حتى | بعد منذ ; أكثر فوق أعلى | أقل تحت أدنى ; أول الأول أولى الأولى | آخر الأخير
    الأخيرة ; شمال* الشمال* | جنوب* الجنوب* | شرق* الشرق* | غرب* الغرب* ; فاز فازت هزم هزمت انتصر*
    | خسر خسرت انهزم* ; زاد زادت ازداد* ارتفع* نما | نقص نقصت انخفض* تراجع* ; أكبر الأكبر | أصغر
    الأصغر ; بدأ بدأت افتتح* أسس تأسس* | انتهى انتهت أغلق* توقف* ; ولد ولدت مولد | مات ماتت توفي
    توفيت ; أم والدة | أب والد ; ابن | ابنة بنت ; أخ شقيق | أخت شقيقة ; اشترى اشترت | باع باعت""",
}
"""Opposites by language: groups parted by ``;``, and their sides by ``|``. The first four groups
are the same in all languages: time, amount, rank, and points of the compass."""

_STRICT = (0, 1, 3)
"""Groups that two claims must have alike: *in 1900* is not *before 1900*. Of the others a claim may
have a word that the other lacks, but not its opposite."""

DECISIVE_LETTERS: Mapping[str, str] = {
    "zh": "不没沒非无無未别勿否莫毋假误除前后後先多少上下超不足东東南西北胜勝负負败敗赢贏输輸"
    "增减減大小早晚始终終首末最一二两兩三四五六七八九十百千万萬亿億〇零半第生死男女父母仅只",
    "ja": "不非無未否誤前後先多少上下超以東南西北勝負敗増減大小早遅始終初末最一二三四五六七八九"
    "十百千万億〇零半第生死男女父母ぬずない",
}
"""Letters of languages without spaces that make another claim of a text that has them besides."""

ARTICLES: Mapping[str, frozenset[str]] = _sets(
    en="the a an",
    de="der die das den dem des ein eine einen einem einer eines",
    fr="le la les l un une",
    es="el la los las un una",
    it="il lo la i gli le un uno una l",
    pt="o os um uma as",
    nl="de het een",
    da="en et den det de",
    no="en ei et den det de",
    sv="en ett den det de",
    el="ο η το οι τα του της των τον την ένας μια ένα",
)

JOINING: Mapping[str, frozenset[str]] = _sets(
    en="and or",
    de="und oder sowie",
    fr="et ou",
    es="y e o u",
    it="e ed o",
    pt="e ou",
    nl="en of",
    pl="i oraz lub",
    cs="a i nebo",
    sk="a i alebo",
    da="og eller",
    no="og eller",
    sv="och eller",
    ru="и или",
    uk="і й та або",
    bg="и или",
    el="και ή",
    hy="և ու կամ",
    kk="және мен пен бен",
    hi="और या",
    mr="आणि किंवा",
    ur="اور یا",
    fa="و یا",
    ar="و أو",
)
"""Words between things of the same role."""

AGENTS: Mapping[str, frozenset[str]] = _sets(
    en="by",
    de="von vom durch",
    fr="par",
    es="por",
    it="da dal dalla dai",
    pt="por pelo pela",
    nl="door",
    pl="przez",
    da="af",
    no="av",
    sv="av",
    el="από",
    bg="от",
    hi="द्वारा",
    ur="ذریعے",
    fa="توسط",
)
"""Words before whoever did what a passive verb says."""


def is_compared_by_words(language: str | None) -> bool:
    """Return whether the words that turn a claim round are listed for a language."""
    return language in NEGATIONS


@lru_cache(_WORDS_KEPT)
def is_negation(word: str, language: str) -> bool:
    """Return whether a word, in lower case, negates."""
    return _pattern(NEGATIONS[language]).fullmatch(word) is not None


@lru_cache(_WORDS_KEPT)
def is_negation_anywhere(word: str) -> bool:
    """Return whether a word, in lower case, negates in any language of words with spaces."""
    spaced = NEGATIONS.keys() - DECISIVE_LETTERS.keys()
    return any(is_negation(word, language) for language in spaced)


@lru_cache(_WORDS_KEPT)
def sides_of(word: str, language: str) -> frozenset[Side]:
    """Return the sides of opposites that a word, in lower case, is on."""
    return frozenset(
        (group, side)
        for group, patterns in enumerate(_groups(language))
        for side, pattern in enumerate(patterns)
        if pattern.fullmatch(word)
    )


def are_opposed(sides: frozenset[Side], others: frozenset[Side]) -> bool:
    """Return whether the words of two claims, by their sides, are on different ones."""
    differing = {group for group, _ in sides ^ others}
    shared = {group for group, _ in sides} & {group for group, _ in others}
    return any(group in _STRICT or group in shared for group in differing)


def are_opposites(one: str, other: str, language: str) -> bool:
    """Return whether a prefix or a suffix makes one of two words the opposite of the other."""
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < _SHORTEST_STEM or len(shorter) == len(longer):
        return False
    stem = shorter.removesuffix("ful") if language == "en" else shorter
    return any(longer == prefix + shorter for prefix in _PREFIXES.get(language, ())) or any(
        longer in (stem + suffix, stem[:-1] + suffix) for suffix in _SUFFIXES.get(language, ())
    )


@cache
def _groups(language: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    groups = _PAIRS.get(language, "").split(";")
    return tuple(tuple(_pattern(word_set(side)) for side in group.split("|")) for group in groups)


@cache
def _pattern(words: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word).replace(r"\*", r".*") for word in sorted(words)))
