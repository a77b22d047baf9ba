"""Words that negate or limit a claim: negations, opposites such as before and after, *only*,
*almost*.

Claims are compared by their words only in the languages of `NEGATIONS`. A trailing ``*`` matches
any ending.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from factormodels.texts.languages import word_set

Side = tuple[int, int]
"""Index of a group of opposites, and of a side within the group."""

_WORDS_KEPT = 65536
"""Number of words whose classes are cached, since a claim is compared with many others."""


def _sets(**words: str) -> Mapping[str, frozenset[str]]:
    return {code: word_set(text) for code, text in words.items()}


NEGATIONS: Mapping[str, frozenset[str]] = _sets(
    en="""not no never none neither nor nobody nothing nowhere cannot without hardly scarcely barely
    false* untrue incorrect* wrong* deny denies denied denying refus* fail* lack* non t dont
    doesnt didnt isnt wasnt arent werent hasnt havent hadnt wont cant""",
    de="""nicht nichts kein* nie niemals niemand* nirgend* ohne weder noch kaum falsch* verneint*
    bestritt* bestreitet leugnet* verweiger* außer""",
    fr="""ne n pas jamais aucun* nul nulle personne rien sans ni guère non faux fausse* nie nia nié
    refus*""",
    es="""no nunca jamás sin ningún ninguno ninguna nadie nada ni tampoco apenas fals* negó niega
    rechaz*""",
    it="non mai nessun* niente nulla senza né neanche nemmeno neppure mica fals* negò nega rifiut*",
    pt="não nunca jamais sem nenhum* ninguém nada nem tampouco fals* negou recus*",
    nl="niet niets geen nooit niemand nergens zonder noch nauwelijks onwaar vals* ontken* weiger*",
    pl="""nie nigdy nikt nikogo nic niczego bez żaden żadna żadne żadnego żadnej ani fałsz*
    zaprzecz* odmów*""",
    cs="""ne není nejsou nebyl nebyla nebylo nebyli nemá neměl neměla nikdy nikdo nic bez žádný
    žádná žádné žádného ani nikoli falešn* popřel* odmít*""",
    sk="""nie nebol nebola nebolo neboli nemá nemal nemala nikdy nikto nič bez žiadny žiadna žiadne
    žiadneho ani nikoho falošn* poprel* odmiet*""",
    da="ikke ingen intet aldrig uden hverken heller næppe nægte* falsk* forkert*",
    no="ikke ingen intet aldri uten verken heller neppe nekte* falsk* feil*",
    sv="inte icke ej ingen inget inga aldrig utan varken knappt neka* falsk* fel*",
    ru="""не нет ни без никогда никто никого никому ничто ничего нигде никакой никакая никакие
    никаких нельзя вряд ложн* неверно отрица* отказ*""",
    uk="""не ні ані без ніколи ніхто нікого ніщо нічого ніде жоден жодна жодного немає хибн*
    запереч* відмов*""",
    bg="""не няма нямаше нямат нито без никога никой никого нищо никъде никакъв никаква никакво
    невярно отказ*""",
    el="""δεν δε μη μην όχι ποτέ κανείς κανένας καμία κανένα τίποτα χωρίς ούτε πουθενά ψευδ*
    αρνήθηκ*""",
    hy="չէ չի չեն չէր չէին ոչ երբեք ոչինչ առանց մի",
    kk="емес жоқ ешқашан ешкім ешнәрсе",
    hi="नहीं न मत बिना बगैर गलत झूठ* इनकार",
    mr="नाही नाहीत नव्हता नव्हती नव्हते न नको विना शिवाय कधीही खोटे",
    ur="نہیں نہ مت بغیر بنا غلط انکار",
    fa="نه نیست نیستند نبود نبودند هرگز هیچ بدون بی نشد نشده نکرد نکرده ندارد نداشت غلط",
    ar="""لا لم لن ليس ليست ليسوا غير بلا دون بدون ما عدم أبدا أبداً قط سوى ولا ولم ولن وليس فلا فلم
    فلن فليس ينفي نفى رفض*""",
    zh="不 没 沒 非 无 無 未 别 勿 否 莫 毋 假 误 除",
    ja="ない なかっ なく ませ ぬ ず 非 不 無 未 否 誤",
)
"""Negations by language; in Chinese and Japanese, substrings of the text."""

_PAIRS: Mapping[str, str] = {
    "en": """!before prior until | after since following ; !more most over exceed* above | less
    fewer least fewest under below beneath ; !first early earl* | last final* late latest later ;
    !north* | south* | east* | west* ; won win wins winning winner beat defeat* victor* | lost
    lose loses losing loser ; increas* rose rise* grew grow* gain* rais* | decreas* fell fall*
    shrank shrink* declin* drop* lower* ; older elder oldest eldest | younger youngest ; begin*
    began begun start* open* found* | end ends ended ending finish* clos* stop* ceas* dissol* ;
    bigger larger greater largest biggest greatest longer longest higher highest taller tallest |
    smaller smallest shorter shortest lower lowest ; born birth | died dead death ; !mother* |
    father* ; !husband | wife ; !son sons | daughter* ; !brother* | sister* ; best better | worst
    worse ; all every everyone always each | some sometimes few ; left | right ; many | few ; buy
    bought buys purchas* | sell sold sells ; arriv* enter* join* | depart* leave leaves ; inside
    within | outside ; male man men boy* | female woman women girl* ; accept* allow* permit*
    approv* | reject* forbid* forbade ban banned prohibit* oppos* ; major majority | minor
    minority ; true | false untrue ; maximum max | minimum min ; import* | export* ; upper |
    lower ; into | out ; against | for""",
    "de": """!vor vorher bevor bis | nach nachdem seit danach ; !mehr meist* über oberhalb | weniger
    wenigst* unter unterhalb ; !erst* früh* | letzt* spät* ; !nord* nörd* | süd* | ost* öst* |
    west* ; gewann gewonnen gewinn* sieg* besieg* schlug | verlor verloren verlier* unterlag ;
    stieg steig* gestieg* wuchs wachs* gewachs* zunahm* erhöh* vermehr* | sank sink* gesunk* fiel
    fall* gefall* schrumpf* abnahm* senk* verminder* verringer* ; älter* ältest* | jünger*
    jüngst* ; begann beginn* begonn* anfang* anfing eröffn* gründ* gegründet* | endet* ende
    beendet* aufhör* schloss schließ* geschlossen aufgelöst* ; größer* größt* länger* längst*
    höher* höchst* | kleiner* kleinst* kürzer* kürzest* niedrig* niedrigst* tiefer* ; geboren
    geburt* | starb gestorben tod* tot verstarb verstorben ; !mutter | vater ; !sohn söhne |
    tochter töchter ; !bruder brüder | schwester* ; besser* best* | schlechter* schlechtest*
    schlimm* ; alle aller immer jeder jede jedes | manche einige manchmal ; links linke* | rechts
    rechte* ; kauft* kaufen gekauft | verkauf* ; mann männer | frau frauen ; höchstens maximal* |
    mindestens minimal* ; ober* | unter*""",
    "fr": """!avant jusque jusqu | après depuis ; !plus davantage dessus | moins dessous ; !premi*
    tôt | derni* tard* ; !nord septentrion* | sud méridion* | orient* | ouest occident* ; gagn*
    vainqu* remport* batt* victoi* | perd* défait* ; augment* croît crois* hausse mont* accr* |
    diminu* baiss* décr* chut* ; aîné* vieux vieille âgé* | cadet* jeune* ; commenc* début* ouvr*
    ouvert* fond* | fin* termin* achev* ferm* cess* dissou* ; grand* long* haut* supérieur* |
    petit* court* bas basse* inférieur* ; né née naquit naiss* | mort* mourut décéd* ; !mère |
    père ; !fils | fille* ; !frère* | sœur* soeur* ; meilleur* mieux | pire* pis ; tous toutes
    toujours chaque | certains quelques parfois ; gauche | droite ; achet* acqu* | vend* ; homme*
    | femme*""",
    "es": """!antes hasta | después tras ; !más encima | menos debajo ; !primer* tempran* | últim*
    tard* ; !norte norteñ* septentrion* | sur sureñ* meridion* | oriental* | oeste occident* ;
    ganó gan* venci* derrot* | perdi* perd* ; aument* subi* creci* crec* | disminu* baj* reduj*
    cay* decreci* ; mayor* viej* | menor* joven* ; comenz* empez* inici* abri* fund* | termin*
    acab* finaliz* cerr* ces* disolvi* ; grande* larg* alt* superior* | pequeñ* cort* inferior* ;
    naci* nacimiento | muri* muert* falleci* ; !madre | padre ; !hijo hijos | hija hijas ;
    !hermano hermanos | hermana hermanas ; mejor* | peor* ; todos todas siempre cada | algunos
    algunas ; izquierda | derecha ; compr* | vend* ; hombre* | mujer*""",
    "it": """!prima fino | dopo poi ; !più sopra oltre | meno sotto ; !prim* presto | ultim* tardi ;
    !nord settentrion* | sud meridion* | est orient* | ovest occident* ; vinse vinto vinc*
    sconfi* batt* | perse perso perd* ; aument* crebbe cresc* sal* | diminu* cal* scese ridus* ;
    anzian* vecchi* | giovan* ; inizi* cominci* apr* aper* fond* | fin* termin* chius* chiu*
    cess* sciol* ; grand* lung* alt* maggior* superior* | piccol* cort* bass* minor* inferior* ;
    nacque nato nata nasc* | morì morto morta mor* ; !madre | padre ; !figlio figli | figlia
    figlie ; !fratello fratelli | sorella sorelle ; miglior* meglio | peggior* peggio ; tutti
    tutte sempre ogni | alcuni alcune ; sinistra | destra ; compr* acquist* | vend* ; uomo uomini
    | donna donne""",
    "pt": """!antes até | depois após ; !mais acima | menos abaixo ; !primeir* cedo | últim* tard* ;
    !norte setentrion* | sul meridion* | leste orient* | oeste ocident* ; ganh* venc* derrot* |
    perd* ; aument* subi* cresc* | diminu* baix* reduz* cai* ; velh* | jove* nov* ; começ* inici*
    abri* fund* | termin* acab* fech* encerr* cess* dissolv* ; maior* grande* long* alt*
    superior* | menor* pequen* curt* inferior* ; nasce* nascid* nasci* | morr* mort* falec* ;
    !mãe | pai ; !filho filhos | filha filhas ; !irmão irmãos | irmã irmãs ; melhor* | pior* ;
    todos todas sempre cada | alguns algumas ; esquerda | direita ; compr* | vend* ; homem homens
    | mulher*""",
    "nl": """!voor voordat tot | na nadat sinds ; !meer meest* boven | minder minst* onder ; !eerst*
    vroeg* | laatst* laat* later ; !noord* | zuid* | oost* | west* ; won wint winn* gewonnen
    versloeg versla* | verloor verlor* verlies* ; steeg stijg* gestegen groei* toenam* verhoog* |
    daal* gedaald zakt* afnam* kromp verlaag* ; ouder* oudst* | jonger* jongst* ; begon begin*
    begonnen start* open* opgericht* stichtte | eindig* einde sloot gesloten stopte* opgeheven ;
    groter* grootst* langer* hoger* | kleiner* kleinst* korter* lager* ; geboren geboorte* |
    stierf gestorven overle* dood ; !moeder | vader ; !zoon zonen | dochter* ; !broer* | zus*
    zuster* ; beter* best* | slechter* slechtst* ; alle altijd elke | sommige soms ; links
    linker* | rechts rechter* ; koopt kocht* gekocht | verko* ; man mannen | vrouw*""",
    "ru": """!до перед прежде | после затем ; !больше более выше свыше над | меньше менее ниже под ;
    !перв* рано раньш* ранн* | последн* поздн* поздно ; !север* | юг юге юга юж* | восток*
    восточ* | запад* ; выигр* побед* победи* | проигр* пораж* ; увелич* вырос* возрос* рост*
    повыс* | уменьш* снизи* упал* сократ* пониз* ; старше старш* | младше младш* моложе ; нача*
    начин* откры* основа* | закон* заверш* закры* прекра* окончи* распу* ; больш* длинн* высок* |
    меньш* коротк* низк* мал* ; роди* рожд* | умер* смерт* скончал* ; !мать матер* | отец отц* ;
    !сын* | дочь дочер* ; !брат* | сестр* ; лучш* | худш* хуже ; все всегда каждый | некотор*
    иногда ; лев* слева | прав* справа ; купи* покуп* | прода* ; мужчин* | женщин*""",
    "pl": """!przed zanim | po ; !więcej bardziej ponad powyżej nad | mniej poniżej pod ; !pierwsz*
    wcześn* | ostatn* późn* ; !północ* | południ* | wschód wschod* | zachód zachod* ; wygra*
    zwycięż* pokona* | przegra* ; wzrós* wzros* rós* zwiększ* | spad* zmala* zmniejsz* obniż* ;
    starsz* | młodsz* ; zaczę* zaczą* rozpocz* otwar* założ* | koń* skończ* zamkn* przesta*
    rozwiąz* ; większ* duż* dłuż* wyższ* | mniejsz* mał* krótsz* niższ* ; urodz* narodz* | zmar*
    umar* śmier* ; !matk* | ojc* ojciec ; !syn syna synowie | córk* ; !brat brata bracia |
    siostr* ; leps* najleps* | gors* najgors* ; wszys* zawsze każd* | niektór* czasem ; lew* |
    praw* ; kupi* | sprzeda* ; mężczyzn* | kobiet*""",
    "cs": """!před než | po ; !více víc nad přes | méně míň pod ; !prvn* brzy dřív* | posledn* pozd*
    ; !sever* | jih* jižn* | východ* | západ* ; vyhr* zvítěz* porazil* | prohr* ; vzrost* vzrůst*
    rost* zvýš* | klesl* kles* sníž* ; starší | mladší ; zača* zahá* otevř* založ* | skonč* konec
    zavř* ukonč* zruš* ; větší delší vyšší velk* | menší kratší nižší mal* ; narod* | zemře*
    smrt* ; !matk* | otec otc* ; !syn syna | dcer* ; !bratr* | sestr* ; lepší | horší ; koupil* |
    prodal*""",
    "sk": """!pred kým | po ; !viac nad | menej pod ; !prv* skôr | posledn* neskôr ; !sever* | juh*
    juž* | východ* | západ* ; vyhra* zvíťaz* porazil* | prehra* ; vzrást* rast* zvýš* | kles*
    zníž* ; starší | mladší ; zača* otvor* založ* | skonč* koniec zatvor* ukonč* zruš* ; väčš*
    dlhš* vyšš* | menš* kratš* nižš* ; narod* | zomre* smrť* ; !matk* | otec otc* ; !syn syna |
    dcér* ; !brat brata | sestr* ; lepš* | horš* ; kúpil* | predal*""",
    "da": """!før inden | efter siden ; !mere flere mest over | mindre færre mindst under ; !først*
    tidlig* | sidst* sen* ; !nord* | syd* | øst* | vest* ; vandt vinde* slog besejre* | tabte
    tabe* ; steg stige* vokse* øge* | faldt falde* mindske* sank ; ældre ældst* | yngre yngst* ;
    begynd* start* åbne* grundlag* | slut* ende* lukke* ophør* ; større størst* længere højere |
    kortere lavere ; født fødsel* | døde død ; !mor | far ; !søn* | datter* ; !bror* | søster* ;
    bedre bedst | værre værst ; købt* | solgt*""",
    "no": """!før innen | etter siden ; !mer flere mest over | mindre færre minst under ; !først*
    tidlig* | sist* sen* ; !nord* | sør* syd* | øst* | vest* ; vant vinne* slo beseir* | tapte
    tape* ; steg stige* vokse* øke* | falt falle* minske* sank ; eldre eldst* | yngre yngst* ;
    begyn* start* åpne* grunnla* | slut* ende* lukke* opphør* ; større størst* lengre høyere |
    kortere lavere ; født fødsel* | døde død ; !mor | far ; !sønn* | datter* ; !bror* | søster* ;
    bedre best | verre verst ; kjøpt* | solgt*""",
    "sv": """!före innan | efter sedan ; !mer fler* mest över | mindre färre minst under ; !först*
    tidig* | sist* sen* ; !norr* nord* | söder* syd* | öst* | väst* ; vann vinn* besegra* slog |
    förlora* ; steg stig* växt* öka* | föll fall* minska* sjönk ; äldre äldst* | yngre yngst* ;
    börja* start* öppna* grunda* | sluta* ände* stäng* upphör* ; större störst* längre högre |
    kortare lägre ; född* föddes | dog död* ; !mor moder | far fader ; !son söner | dotter
    döttrar ; !bror bröder | syster* ; bättre bäst | sämre sämst värre ; köpt* | sålde sålt*""",
    "uk": """!перед | після ; !більше понад вище над | менше нижче під ; !перш* рано раніш* |
    останн* пізн* ; !північ* | південь півден* | схід* схо* | захід* захо* ; вигра* перем* |
    програ* ; зріс* зрос* збільш* | зменш* впа* зниз* ; старш* | молодш* ; поча* відкри* заснова*
    | закінч* закри* припин* ; більш* | менш* ; народ* | помер* ; !мати матер* | батьк* ; син* |
    дочк* доньк* ; !брат* | сестр* ; краще кращ* | гірш*""",
    "bg": """!преди | след ; !повече над | по-малко малко под ; !първ* рано | последн* късно ;
    !север* | юг южн* | изток източн* | запад* ; спечел* победи* | загуб* ; увелич* нарас* |
    намал* спад* ; по-стар* старш* | по-млад* млад* ; започ* откри* основа* | завърш* закри*
    приключ* ; голям* дълъг висок* | малък малк* къс* нисък ; роден* роди* | почина* умр* умира*
    ; !майк* | бащ* ; син* | дъщер* ; !брат* | сестр* ; купи* | прода*""",
    "el": """!πριν | μετά ; !περισσότερ* πάνω άνω | λιγότερ* κάτω ; !πρώτ* νωρίς | τελευταί* αργά ;
    !βόρει* βορ* | νότι* νότ* | ανατολ* | δυτικ* δύσ* ; κέρδισ* νίκησ* | έχασ* ηττήθηκ* ; αυξ*
    αύξ* ανέβ* | μει* έπεσ* ; μεγαλύτερ* | μικρότερ* νεότερ* ; άρχισ* ξεκίνησ* άνοιξ* ίδρυσ*
    ιδρύθηκ* | τελείωσ* έκλεισ* σταμάτησ* ; γεννήθηκ* | πέθαν* ; !μητέρα | πατέρα* ; !γιος | κόρη
    ; !αδελφός αδερφός | αδελφή αδερφή ; καλύτερ* | χειρότερ* ; αγόρασ* | πούλησ*""",
    "hy": """!առաջ մինչև նախքան | հետո ; !ավելի շատ | քիչ պակաս ; !առաջին | վերջին ; !հյուսիս* |
    հարավ* | արևելք* արևելյան | արևմուտք* արևմտյան ; հաղթ* | պարտ* ; ավելաց* աճ* | նվազ* ; ավագ
    մեծ | կրտսեր փոքր ; սկս* հիմն* | ավարտ* փակ* ; ծնվ* | մահաց* մեռ*""",
    "kk": """!дейін бұрын | кейін соң ; !көп артық жоғары | аз кем төмен ; !бірінші алғаш* | соңғы ;
    !солтүстік* | оңтүстік* | шығыс* | батыс* ; жеңді жеңіп | жеңілді ұтылды ; артты өсті көбей*
    | азай* кеміді төменде* ; үлкен аға | кіші іні ; баста* ашыл* құрыл* | аяқта* жабыл* бітті ;
    туған туды | қайтыс өлді""",
    "hi": """!पहले पूर्व तक | बाद ; !अधिक ज्यादा ज़्यादा ऊपर | कम नीचे ; !पहला पहली प्रथम | अंतिम
    आखिरी आख़िरी ; !उत्तर* | दक्षिण* | पूरब पूर्वी | पश्चिम* ; जीत* हराया | हार हारा हारी हारे ;
    बढ़* वृद्धि | घट* कमी गिर* ; बड़ा बड़ी बड़े | छोटा छोटी छोटे ; शुरू आरंभ खुला खुली स्थापित |
    समाप्त खत्म ख़त्म बंद ; जन्म जन्मा | मृत्यु मरा मरी निधन ; !माता माँ | पिता ; !बेटा पुत्र |
    बेटी पुत्री ; !भाई | बहन ; खरीद* | बेच*""",
    "mr": """!आधी पूर्वी पर्यंत | नंतर ; !जास्त अधिक वर | कमी खाली ; !पहिला पहिली पहिले प्रथम |
    शेवट* ; !उत्तर* | दक्षिण* | पूर्व पूर्वेला | पश्चिम* ; जिंक* हरवले | हरला हरली हार ; वाढ* |
    घट* ; मोठा मोठी मोठे | लहान धाकटा धाकटी ; सुरू | बंद संप* ; जन्म* | मृत्यू निधन मेला ; !आई |
    वडील ; !मुलगा | मुलगी ; !भाऊ | बहीण""",
    "ur": """!پہلے قبل تک | بعد ; !زیادہ اوپر | کم نیچے ; !پہلا پہلی اول | آخری ; !شمال* | جنوب* |
    مشرق* | مغرب* ; جیت* ہرایا | ہار ہارا ہاری ; بڑھ* اضافہ | گھٹ* کمی ; بڑا بڑی | چھوٹا چھوٹی ;
    شروع قائم | ختم بند ; پیدا | وفات انتقال مر ; !ماں | باپ والد ; !بیٹا | بیٹی ; !بھائی | بہن ;
    خرید* | بیچ*""",
    "fa": """!پیش قبل تا | پس بعد ; !بیش بیشتر بالای بالا | کم کمتر زیر پایین ; !نخست* اول اولین |
    آخر آخرین واپسین ; !شمال* | جنوب* | شرق* خاور* | غرب* باختر* ; برد پیروز* | باخت شکست ;
    افزایش رشد | کاهش ; بزرگ* | کوچک* ; آغاز شروع تأسیس گشود | پایان تعطیل بست ; زاده متولد |
    درگذشت مرد ; !مادر | پدر ; !پسر | دختر ; !برادر | خواهر ; خرید* | فروخت*""",
    "ar": """!قبل حتى | بعد منذ ; !أكثر فوق أعلى | أقل تحت أدنى ; !أول الأول أولى الأولى | آخر
    الأخير الأخيرة ; !شمال* الشمال* | جنوب* الجنوب* | شرق* الشرق* | غرب* الغرب* ; فاز فازت هزم
    هزمت انتصر* | خسر خسرت انهزم* ; زاد زادت ازداد* ارتفع* نما | نقص نقصت انخفض* تراجع* ; أكبر
    الأكبر | أصغر الأصغر ; بدأ بدأت افتتح* أسس تأسس* | انتهى انتهت أغلق* توقف* ; ولد ولدت مولد |
    مات ماتت توفي توفيت ; !أم والدة | أب والد ; !ابن | ابنة بنت ; !أخ شقيق | أخت شقيقة ; اشترى
    اشترت | باع باعت""",
}
"""Opposites by language: groups separated by ``;``, their sides by ``|``. Adding a word of a group
that begins with ``!`` changes the meaning of a claim: *before 1900* is not *in 1900*, and *her
mother* is not *she*."""

_STRICT = "!"

DECISIVE_LETTERS: Mapping[str, str] = {
    "zh": "不没沒非无無未别勿否莫毋假误除前后後先多少上下超不足东東南西北胜勝负負败敗赢贏输輸"
    "增减減大小早晚始终終首末最一二两兩三四五六七八九十百千万萬亿億〇零半第生死男女父母仅只可几幾全每某部都各",
    "ja": "不非無未否誤前後先多少上下超以東南西北勝負敗増減大小早遅始終初末最一二三四五六七八九"
    "十百千万億〇零半第生死男女父母ぬずないけ可全毎各部約",
}
"""Letters of languages without spaces that change the meaning of a claim when added."""

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
"""Words that join phrases of the same role."""

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
"""Words before the agent of a passive verb."""


WEIGHTLESS: Mapping[str, frozenset[str]] = _sets(
    en="""the a an and is are was were am be been being has have had having do does did of in on at
    as that which who whom whose this these those it its he she they we you i his her their our
    my your s there also what where itself himself herself themselves""",
    de="""der die das den dem des ein eine einen einem einer eines und ist sind war waren hat hatte
    haben hatten habe gewesen worden wird werden wurde wurden in im an am auf bei beim zum zur
    als dass es er sie sein seine seinen seiner seinem ihr ihre ihren ihrer ihrem dies dieser
    diese dieses welche welcher auch dort sich man gar""",
    fr="""le la les l un une des du de d et est sont était étaient fut furent été a ont avait
    avaient eut au aux en dans sur que qui qu où ce cette ces cela c il elle ils elles on son sa
    ses leur leurs se s y aussi comme""",
    es="""el la los las lo un una unos unas de del y e es son era eran fue fueron ha han había sido
    está estaba en que quien cual este esta estos estas esto él ella ellos ellas su sus se
    también como al""",
    it="""il lo la i gli le l un uno una di d del dell della dei delle dello degli e ed è sono era
    erano fu furono ha hanno aveva stato stata stati in nel nello nella nei nelle sul sulla che
    chi questo questa egli lui lei essi suo sua suoi sue si anche come""",
    pt="""o a os as um uma uns umas de do da dos das e é são era eram foi foram tem tinha sido em no
    na nos nas que quem este esta isto ele ela eles elas seu sua seus suas se também como""",
    nl="""de het een en is zijn was waren werd werden wordt worden heeft had hebben geweest in op
    aan bij van dat die deze dit hij zij ze het haar hun er zich ook als wie wat daar""",
    pl="""i w we z ze na jest są był była było byli został została to ten ta tego tej on ona ono oni
    jego jej ich się który która które że także roku r""",
    cs="""a v ve na je jsou byl byla bylo byli se si to ten ta toho on ona ono jeho její jejich
    který která které že také roku""",
    sk="""a v vo na je sú bol bola bolo boli sa si to ten tá toho on ona ono jeho jej ich ktorý
    ktorá ktoré že tiež roku""",
    da="""en et den det de og er var blev bliver har havde i på ved af han hun vi deres hans hendes
    dette denne som der også sig at""",
    no="""en et ei den det de og er var ble blir har hadde i på ved av han hun vi deres hans hennes
    dette denne som også seg""",
    sv="""en ett den det de och är var blev blir har hade i på vid av han hon vi deras hans hennes
    detta denna som också sig att""",
    ru="""и в во на он она оно они его её ее их был была было были это этот эта который которая
    которые также что году год г""",
    uk="""і й та у в на він вона воно вони його її їх був була було були це цей ця який яка які
    також що році рік""",
    bg="""и в във на той тя то те му е са беше бяха бил била било това този тази който която които
    също че се през година""",
    el="""ο η το οι τα του της των τον την ένας μια ένα και είναι ήταν έχει είχε στο στη στην στον
    στα στις σε που αυτός αυτή αυτό επίσης ότι""",
    hy="և ու է են էր էին նա նրա նրանք որ նաև մեջ այս այդ թվականին",
    kk="және ол олар болды болған еді жылы бір да де туралы оның",
    hi="""है हैं था थी थे और का की के को में ने पर वह वे यह ये एक भी हुआ हुई हुए गया गई उसने उसका
    उसकी उसके""",
    mr="""आहे आहेत होता होती होते आणि चा ची चे च्या ला मध्ये तो ती ते हा ही हे एक पण झाला झाली
    त्याने तिने त्याचा""",
    ur="میں کا کی کے کو پر نے ہے ہیں تھا تھی تھے اور وہ یہ ایک بھی ہوا ہوئی گیا",
    fa="در به را که این آن او و است بود بودند شد شده یک سال هم می",
    ar="في هو هي هم كان كانت كانوا هذا هذه التي الذي أن إن عام و قد",
)
"""Words of little weight by language: articles, forms of *to be* and *to have*, pronouns, *and*,
*of* and *in*. Adding them does not change the meaning of a claim."""

LIMITING: Mapping[str, frozenset[str]] = _sets(
    en="""only solely merely just except almost nearly partly partially off out up down away or if
    unless whether though although until all every everyone everything each some someone most
    mostly few both either half part perhaps maybe possibly probably likely allegedly reportedly
    supposedly apparently may might could would should must can will alleg* claim* rumor* rumour*
    suppos* attempt* tried tries try plan* intend* intent* want* wish* hop* hope* aim* nominat*
    candidat* unsuccess* fiction* imaginary honorary vice deputy assistant ex than bc bce pm am
    without him them us me against versus seldom rarely once once used once instead former
    formerly acting interim fake mock near nearby myth* hoax*
    but save barring consolation""",
    de="""nur bloß lediglich fast beinahe nahezu teilweise teils oder wenn falls ob obwohl alle
    alles allen jeder jede jedes einige manche meisten wenige beide beiden halb halbe hälfte
    vielleicht möglicherweise vermutlich wahrscheinlich angeblich kann konnte könnte darf durfte
    soll sollte muss musste will wollte würde würden versuch* plant* geplant* wünsch* hoff*
    nominiert* kandid* vize* stellvertret* ehren* ehemalig*
    nahe unweit mythos legende
    außer ausser ausgenommen""",
    fr="""seul seule seuls seules seulement uniquement exclusivement presque quasi partiellement ou
    si sauf tous toutes tout toute chaque quelques certains certaines plupart peu moitié demi
    peut peuvent pourrait pouvait doit devait peut-être probablement prétendument vice adjoint*
    honoraire* tent* essay* candidat* ancien ancienne près mythe
    ex
    excepté hormis exclu*""",
    es="""solo sólo solamente únicamente casi parcialmente o u si salvo excepto todos todas todo
    toda cada algunos algunas mayoría pocos pocas ambos ambas mitad medio quizá quizás
    probablemente posiblemente supuestamente puede podría podía debe debía intent* trat*
    candidat* vice* ex cerca mito
    menos exclu*""",
    it="""solo soltanto solamente unicamente quasi parzialmente o od se tranne tutti tutte tutto
    tutta ogni alcuni alcune pochi poche entrambi entrambe metà mezzo forse probabilmente
    presumibilmente può poteva potrebbe deve doveva tent* cerc* candidat* vice ex vicino
    mito
    eccetto salvo""",
    pt="""só somente apenas unicamente quase parcialmente ou se exceto todos todas todo toda cada
    alguns algumas maioria poucos poucas ambos ambas metade meio talvez provavelmente
    supostamente pode podia poderia deve devia tent* candidat* vice ex perto
    mito
    salvo menos exclu*""",
    nl="""alleen slechts enkel bijna gedeeltelijk of indien behalve alle alles elke ieder iedere
    sommige meeste weinig weinige beide beiden half helft misschien mogelijk waarschijnlijk
    vermoedelijk kan kon zou zouden mag mocht moet moest wil wilde prob* vice* kandid*
    voormalig* nabij mythe
    uitgezonderd""",
    pl="""tylko jedynie prawie niemal częściowo lub albo czy jeśli oprócz wszyscy wszystkie każdy
    każda niektórzy niektóre większość mało oba obaj obie połowa pół może mógł mogła
    prawdopodobnie podobno rzekomo próbowa* kandyd* wice*
    prócz wyjątkiem""",
    cs="""jen jenom pouze téměř skoro částečně nebo či jestli kromě všichni všechny každý každá
    někteří některé většina málo oba obě polovina půl možná snad pravděpodobně údajně může mohl
    mohla pokusil* pokoušel* kandid*
    vyjma výjimkou""",
    sk="""len iba takmer skoro čiastočne alebo či ak okrem všetci všetky každý každá niektorí
    niektoré väčšina málo obaja obe polovica pol možno asi pravdepodobne údajne môže mohol mohla
    pokúsil* kandid*
    výnimkou""",
    da="""kun næsten delvis eller hvis undtagen alle alt hver nogle flest få begge halv halvdelen
    måske muligvis sandsynligvis angiveligt kan kunne vil ville skal skulle må måtte forsøg*
    prøv* kandid* vice*
    bortset""",
    no="""bare kun nesten delvis eller hvis unntatt alle alt hver noen flest få begge halv
    halvparten kanskje muligens sannsynligvis angivelig kan kunne vil ville skal skulle må måtte
    forsøk* prøv* kandid* vise*
    bortsett""",
    sv="""bara endast nästan delvis eller om utom alla allt varje några flesta få båda halv hälften
    kanske möjligen sannolikt troligen kan kunde vill ville skall ska skulle måste försök*
    kandid* vice*
    förutom""",
    ru="""только лишь почти частично или либо если кроме все всё каждый каждая некоторые большинство
    мало оба обе половина пол возможно вероятно наверное якобы может мог могла пытал* попыт*
    хотел* план* кандидат* вице* бы
    исключением""",
    uk="""тільки лише майже частково або чи якщо крім усі всі кожен кожна деякі більшість мало
    обидва обидві половина можливо мабуть нібито може міг могла намагав* хотів* хотіла план*
    кандидат* віце* би
    окрім винятком""",
    bg="""само единствено почти частично или ако освен всички всеки всяка някои повечето малко
    двамата двете половина може вероятно уж можеше опит* искаше кандидат* вице* би
    изключение""",
    el="""μόνο σχεδόν ή αν εκτός όλοι όλες όλα κάθε μερικοί μερικές μερικά περισσότεροι λίγοι λίγες
    αμφότεροι μισό μισός ίσως πιθανώς πιθανόν δήθεν μπορεί μπορούσε προσπάθησ* υποψήφι* θα""",
    hy="""միայն գրեթե մասամբ կամ եթե բացի բոլոր բոլորը ամեն որոշ մեծամասնությունը երկուսն երկուսը
    կես գուցե հավանաբար կարող պետք փորձ* թեկնածու*""",
    kk="""тек ғана дерлік жартылай немесе егер басқа барлық бәрі әр кейбір көпшілігі екеуі жартысы
    мүмкін бәлкім сияқты тырыс* кандидат*""",
    hi="""केवल सिर्फ सिर्फ़ लगभग आंशिक या अगर यदि सिवाय सभी सब हर प्रत्येक कुछ अधिकांश दोनों आधा आधे
    शायद संभवतः कथित सकता सकती सकते कोशिश उम्मीदवार पूर्व उप""",
    mr="""फक्त केवळ जवळजवळ किंवा जर सर्व प्रत्येक काही बहुतेक दोघे दोन्ही अर्धा कदाचित बहुधा शकतो
    शकते प्रयत्न उमेदवार माजी उप""",
    ur="""صرف محض تقریباً تقریبا یا اگر سوائے تمام سب ہر کچھ بعض اکثر دونوں آدھا شاید غالباً مبینہ
    سکتا سکتی کوشش امیدوار سابق نائب""",
    fa="""فقط تنها تقریباً تقریبا یا اگر جز همه هر برخی بعضی بیشتر اکثر هردو نیم نصف شاید احتمالاً
    گویا توانست باید کوشید نامزد سابق معاون""",
    ar="""فقط إلا تقريبا تقريباً جزئيا أو إذا لو كل جميع بعض معظم أغلب كلا كلتا نصف ربما لعل قد يمكن
    يجب حاول حاولت مرشح سابق نائب""",
)
"""Words by language that limit a claim: *only*, *all*, *or*, *almost*, *may*, *tried*. Adding one
changes the meaning of a claim."""

PARTICLES: Mapping[str, frozenset[str]] = _sets(
    en="on off in out up down",
    de="ab an auf aus ein zu vor nach mit um unter über los weg her hin zurück vorbei",
    nl="af aan op uit in toe voor na mee om onder over weg terug",
)
"""Words that are verb particles at the end of a claim, as in *nahm zu* and *nahm ab*."""

PASSIVE: Mapping[str, frozenset[str]] = _sets(
    en="is are was were am be been being",
    de="wird werden wurde wurden worden",
    fr="est sont était étaient fut furent été",
    es="es son era eran fue fueron sido",
    it="è sono era erano fu furono stato stata stati venne",
    pt="é são era eram foi foram sido",
    nl="wordt worden werd werden",
    da="blev bliver",
    no="ble blir",
    sv="blev blir",
    pl="został została",
    ru="был была было были",
    uk="був була було були",
)
"""Forms of the auxiliary verb of the passive: *was taught* and *taught* differ."""

AUXILIARIES: Mapping[str, frozenset[str]] = _sets(
    en="has had have",
    de="hat hatte haben hatten",
    fr="a ont avait avaient eut",
    es="ha han había habían",
    it="ha hanno aveva avevano",
    pt="tem têm tinha tinham",
    nl="heeft had hebben hadden",
    da="har havde",
    no="har hadde",
    sv="har hade",
)
"""Forms of *to have* as an auxiliary verb, which are not prepositions."""

CASES: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "de": (word_set("der ein"), word_set("den dem einen einem")),
    "el": (word_set("ο η"), word_set("τον την")),
}
"""Articles that mark a subject, and articles that mark an object; the sets are disjoint."""

_ENGLISH_ENDINGS = tuple(
    frozenset(endings)
    for endings in (
        ("", "s", "es", "ed", "d", "ing", "e"),
        ("ed", "ing", "es", "er", "ers", "or", "ors", "ion", "ions", "e"),
        ("y", "ies", "ied", "ying"),
        ("", "ly"),
        ("", "n", "en"),
    )
)
"""Interchangeable endings. An agent noun is not a form of its verb, since *er* also ends
comparatives."""

_OF_NAMES = word_set("s an n ian ean ine ish ese e a ia y") | {""}
_DERIVED = word_set("s an n ian ean ine ish ese")
"""Endings of names and of words derived from them, such as *Brazil* and *Brazilian*."""

INFLECTED_NAMES = frozenset(("de", "pl", "cs", "sk", "ru", "uk", "el", "hy", "kk"))
"""Languages that inflect names, or write all nouns with a capital letter."""

_GENDERED = frozenset(("es", "it", "pt"))
"""Languages in which *o* and *a* mark gender in names, as in *Julio* and *Julia*."""

_SUPERLATIVE_ST = frozenset(("de", "nl", "da", "no", "sv"))
"""Languages in which *st* in the ending marks a superlative."""


def is_compared_by_words(language: str | None) -> bool:
    """Return whether the negations of a language are listed."""
    return language in NEGATIONS


@lru_cache(_WORDS_KEPT)
def is_negation(word: str, language: str) -> bool:
    """Return whether a word, in lower case, is a negation."""
    return _pattern(NEGATIONS[language]).fullmatch(word) is not None


@lru_cache(_WORDS_KEPT)
def sides_of(word: str, language: str) -> frozenset[Side]:
    """Return the sides of opposites that a word, in lower case, belongs to."""
    return frozenset(
        (group, side)
        for group, patterns in enumerate(_groups(language))
        for side, pattern in enumerate(patterns)
        if pattern.fullmatch(word)
    )


@lru_cache(_WORDS_KEPT)
def is_limiting(word: str, language: str) -> bool:
    """Return whether adding a word, in lower case, changes the meaning of a claim."""
    return (
        _pattern(LIMITING[language]).fullmatch(word) is not None
        or any(group in _strict_groups(language) for group, _ in sides_of(word, language))
        or word in PARTICLES.get(language, frozenset()) - WEIGHTLESS[language]
        or (len(word) == 1 and word.islower())
    )


@lru_cache(_WORDS_KEPT)
def are_forms(word: str, other: str, language: str, *, is_name: bool) -> bool:
    """Return whether two words are forms of the same word, such as *paint* and *painted*.

    Args:
        word: a word in lower case.
        other: another word in lower case.
        language: code of their language.
        is_name: whether both begin with a capital letter within a claim.
    """
    pairs = zip(word, other, strict=False)
    shared = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(word), len(other)))
    if shared < 3 or sides_of(word, language) != sides_of(other, language):
        return False
    endings = frozenset((word[shared:], other[shared:]))
    if is_name and language not in INFLECTED_NAMES:
        return endings <= _OF_NAMES and bool(endings & _DERIVED)
    if language == "en":
        return any(
            {word[cut:], other[cut:]} <= group and cut >= 3 + ("" not in (word[cut:], other[cut:]))
            for cut in (shared, shared - 1)
            for group in _ENGLISH_ENDINGS
        )
    if language in _SUPERLATIVE_ST and len({"st" in ending for ending in endings}) == 2:
        return False
    if language in _GENDERED and {"o", "a"} <= {ending[:1] for ending in endings}:
        return False
    longest = max(map(len, endings))
    return longest <= 2 if "" in endings else longest <= 3 and shared >= 4


@cache
def _groups(language: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    groups = _PAIRS.get(language, "").replace(_STRICT, "").split(";")
    return tuple(tuple(_pattern(word_set(side)) for side in group.split("|")) for group in groups)


@cache
def _strict_groups(language: str) -> frozenset[int]:
    groups = _PAIRS.get(language, "").split(";")
    return frozenset(number for number, group in enumerate(groups) if _STRICT in group)


@cache
def _pattern(words: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word).replace(r"\*", r".*") for word in sorted(words)))
