"""What label words mean: a small thesaurus of business terms, so that a schema in English finds labels in other languages.

Each concept lists words in English, German, French, Dutch, Spanish, Italian and Portuguese (and the Malay of receipts).
A text becomes a bag of concepts; a word outside the thesaurus stands for itself by its stem.
"""

from __future__ import annotations

import functools
import re
import unicodedata

_THESAURUS = """
invoice: inv rechnung rechnungen rechnungs facture factuur factura fattura fatura bill rg beleg quittung receipt
number: num no nr nummer numéro numero nº n° # id nos núm numeros ziffer kenn ticket-n bon check-no
date: datum dated tanggal tarikh fecha data dates
due: zahlbetrag zahlungsbetrag payer zahlen betalen fällig fälligkeit fälligkeitsdatum zahlbar échéance vervaldatum payable vencimiento scadenza vencimento deadline zahlungsziel owe owing régler à-régler
total: grand gesamt gesamtbetrag summe totaal totale sum endbetrag endsumme jumlah totals totaux rechnungsbetrag importe-total overall rechnungssumme
gross: brutto bruttobetrag bruttosumme ttc inklusive inkl incl inclusive including bruto lordo
net: netto nettobetrag nettosumme subtotal sub-total zwischensumme ht excl excluding before warenwert steuerbasis taxable neto imponible imponibile hors base
tax: fein tan pan gstin paye stkl vat gst mwst ust tva btw umsatzsteuer mehrwertsteuer steuer steuerbetrag taxes iva sst umsatz impuesto imposta belasting imposto nif cif
order: bestellung bestell auftrag auftrags commande purchase po pedido ordine encomenda orders auftragsnummer p.o
reference: ref referenz referentie réf référence zeichen referencia riferimento referência kenmerk aktenzeichen
buyer: customer kunde kunden client klant käufer recipient rechnungsempfänger leistungsempfänger acheteur invoiced cliente comprador acquirente afnemer debtor auftraggeber bill-to billed sold
seller: vendor supplier verkäufer lieferant vendeur issuer leverancier merchant aussteller firma proveedor fornitore fornecedor fournisseur vendedor venditore rechnungssteller leistungserbringer provider remit
company: business unternehmen société entreprise bedrijf empresa azienda corporation employer firma organisation organization institution store shop
name: nom naam namen nombre nome names fullname
first: vorname prénom given forename nombres voornaam
last: nom-de-famille surname nachname familienname apellido cognome achternaam family
address: adresse anschrift adres alamat dirección direccion indirizzo endereço street straße strasse rue calle via addresses
city: ort stadt ville ciudad città plaats town cidade municipality
country: land pays país paese nation nationality staatsangehörigkeit nationalité federation fed
zip: plz postleitzahl postal postcode cap cp code-postal zipcode
state: bundesland province provincia région staat
amount: betrag montant bedrag importe importo amt sum-of valor entgelt nettowert zeilenbetrag betr montants bedragen importi line-amount
value: wert valeur waarde valore
paid: pay payment zahlung zahlbetrag payer betaling bezahlen prepaid zahlen gezahlt pago pagamento payé betaald payments anzahlung acompte deposit règlement
balance: outstanding offen restbetrag remaining saldo solde kontostand salden saldo's reste
opening: previous anfang anfangs anfangssaldo alter beginning initial ancien précédent anterior iniziale begin vorheriger prior forward vortrag prev alt
closing: new ending end-balance endsaldo neuer final nouveau nuevo finale eind schluss
issue: issued ausstellung ausgestellt émission emisión emissione ausstellungsdatum belegdatum emission uitgifte
delivery: lieferung liefer livraison shipping leistung leistungs lieferdatum shipment delivered entrega consegna levering versand expédition versanddatum supply ship
start: from begin first von du ab beginning vom début inicio inizio start-date effective commencement desde dal départ gültig-ab valid-from since beginn von-zeit prend commencing beginnt effet
end: to bis au until through ending zum fin fine hasta al einde termination ende expiry-date
period: zeitraum période periodo periode flight run schedule abrechnungszeitraum leistungszeitraum term laufzeit duration dauer durée monat month mois
contract: vertrag contrat agreement contrato contratto contract-no overeenkomst vereinbarung
advertiser: werbekunde annonceur sponsor
agency: agentur agence agencia
phone: tel telefon telephone fon téléphone mobile telefono teléfono telefoon handy cell portable ph mobil
fax: telefax télécopie
email: e-mail mail courriel correo e-mails
website: web www url homepage site internet
iban: iban-nr
bic: swift bic-code
bank: konto account bankverbindung banque banco banca rekening kontonummer acct compte cuenta conto
cash: tender tendered bar tunai espèces contant efectivo given gegeben received
change: wechselgeld rückgeld baki rendu wisselgeld monnaie cambio
rounding: round rounded rundung bulat arrondi afronding redondeo
discount: rabatt skonto remise disc korting descuento sconto nachlass abzug rebate
shipping_cost: freight versandkosten fracht porto postage port verzendkosten portes spedizione versandkostenanteil
qty: quantity menge quantité aantal pcs anzahl qté cantidad quantità quantidade units stk stück pieces hrs nos-of hoeveelheid anz nombre pezzi bestellmenge liefermenge q.tà q.ta qtà qta cant ud uds stuks antal
price: preis prix prijs rate unitprice cost einzelpreis stückpreis precio prezzo preço pu tarif unit-cost vk-preis p.u p.u. stkpreis einzel
unit: einheit unité eenheid unidad unità each einzel per uom me units unidades unités mengeneinheit meng
description: beschreibung bezeichnung désignation omschrijving descripción descrizione particulars details artikelbezeichnung libellé text concept verwendungszweck bezeichnungen leistung-text leistung artikelbeschreibung tekst texte testo artikeltext dienstleistung activity tätigkeit activité naam-artikel naturedesopérations opération nature vorgang buchungstext
product: produkt artikel item article producto prodotto produit goods ware items sku material articolo
position: pos line posten ligne lines regel lfd ln riga zeile
page: seite pagina página blatt
registration: reg register registrierung registernummer handelsregister hrb company-no kvk siret siren registro rcs enregistrement
time: uhrzeit zeit heure hora tijd ora times
estimate: est schätzung
revision: rev version
commission: provision kommission
salary: wage pay-rate gehalt lohn salaire sueldo stipendio loon bezüge verdienst earnings
employee: arbeitnehmer mitarbeiter employé empleado dipendente werknemer personal staff salarié personalnummer worker pers personal-nr
employer: arbeitgeber employeur empleador
deduction: abzüge retenue deducción deductions withholding cotisations retenues abzug trattenute trattenuta inhoudingen descuentos
birth: geburtsdatum geboren geburt naissance born dob nacimiento nascita geb birthdate né née yb geb nascimento d.o.b d.0.b
age: alter âge edad età leeftijd
sex: gender geschlecht sexe sexo sesso geslacht
patient: patienten patiënt paciente paziente
doctor: physician arzt médecin practitioner dr médico medico provider-name
collected: entnahme entnommen extracción taken prélèvement prelievo sampled drawn abnahme collection eingang
reported: informe befunddatum ausgabe rapport erstellt released printed
male: m männlich masculin masculino hombre varón maschio maschile mann man herr
female: f w weiblich féminin femenino mujer femmina femminile frau woman femme
lab: laboratory labor laboratoire laboratorio
hotel: albergo inn
institution: hochschule anstalt institut établissement
level: stufe niveau grade-level
result: ergebnis résultat resultado risultato results befund wert-result
range: referenzbereich normal interval normbereich limits referencia reference-interval referenz-bereich riferimento intervallo réf
test: analysis analyse parameter exam untersuchung analyte prüfung examen determinación determinaciones bestimmung bepaling esame prova
policy: police versicherungsschein póliza polizza polis versicherungsnummer
insurance: versicherung assurance seguro assicurazione verzekering
insured: versicherter assuré policyholder versicherungsnehmer asegurado assicurato verzekerde souscripteur named-insured
insurer: versicherer assureur aseguradora assicuratore verzekeraar underwriter
premium: prämie prime beitrag premio prima
coverage: deckung garantie cobertura copertura
limit: grenze plafond limite límite
expiry: expires expiration ablauf gültig valid validity verfall vervalt caducidad expiry-date verfallsdatum expire
status: zustand état estado stato
type: art typ tipo soort kind class category kategorie catégorie klasse
title: titel titre título titolo heading betreff objet subject regarding
code: kode código codice key schlüssel
weight: gewicht poids peso kg gross-weight
meter: zähler compteur contador contatore zählernummer
reading: zählerstand relevé lectura stand index ablesung lettura
consumption: verbrauch consommation consumo usage verbruik kwh m3 differenz
tracking: sendungsnummer trackingnummer suivi
carrier: spediteur transporteur frachtführer vettore forwarder
shipper: absender expéditeur sender consignor remitente mittente verlader versender
consignee: empfänger destinataire receiver destinatario ontvanger warenempfänger ship-to deliver-to
origin: abfahrt von-ort loading abgang
destination: ziel discharge bestemming
arrival: anreise check-in checkin ankunft arrivée llegada arrivo aankomst
departure: abreise check-out checkout abfahrt-d départ salida partenza vertrek abflug
vessel: ship schiff navire voyage
guest: gast huésped ospite client-name pers comensales comens couverts covers gedecke coperti
adult: adults erwachsene adultes adulti personen persons pax
child: children kinder enfants
confirmation: bestätigung confirmación conferma buchungsnummer booking reservation reservierung prenotazione réservation buchung-nr conf buchungscode code-réservation
room: zimmer chambre habitación camera kamer
table: tisch tafel mesa tavolo mesa tisch-nr
server: waiter kellner serveur cashier served bedient kassierer kasse clerk operator bediener camarero mozo bediente serveuse
tip: gratuity trinkgeld pourboire propina
night: nights nächte nuits noches notti nights nachten
rent: kaltmiete grundmiete nettokaltmiete monatsmiete miete loyer alquiler affitto huur kaltmiete
tenant: mieter locataire inquilino huurder lessee
landlord: owner eigentümer vermieter bailleur propriétaire propietario locatore verhuurder lessor lessor-l
property: objekt immobilie bien mietobjekt premises wohnung apartment
department: abteilung service departamento reparto afdeling dept
project: projekt projet proyecto progetto
manager: leiter responsable jefe vorgesetzter supervisor approver
contact: ansprechpartner sachbearbeiter interlocuteur contacto contatto contactpersoon attention attn bearbeiter salesperson rep
signature: unterschrift firma-sign handtekening signed
location: standort lieu ubicación luogo plaats-loc place venue
experience: berufserfahrung expérience experiencia employment work-history berufspraxis
education: ausbildung formation educación bildung studium schooling
skill: fähigkeiten kenntnisse compétences habilidades skills
language: sprache sprachen langue langues idioma lingua taal languages
degree: abschluss diplôme título-univ grad
university: universität université universidad school schule hochschule
grade: note punkte calificación voto mark score points pts gpa cgpa sgpa durchschnittsnote notenschnitt moyenne gesamtnote media grd ltr letter
average: moyenne durchschnitt mittel mittelwert media promedio gemiddelde mean gpa sgpa cgpa durchschnittsnote
credit: ects kredit haben crédit credits lp cp cred cfu leistungspunkte sws
debit: soll débit
semester: term-sem trimester
course: kurs cours fach modul subject-course module prüfung prüfungsleistung enseignement unité lehrveranstaltung asignatura insegnamento vak
team: mannschaft équipe equipo squadra club verein
rank: rang place platz pos-rank position-rank classement placement
player: spieler joueur athlete athlet swimmer teilnehmer competitor participant
points: punkte pts
event: veranstaltung événement wettkampf evento wettbewerb competition
hours: stunden heures horas ore uren std std. stunde dauer-std
day: tag jour día giorno dag days tage weekday wochentag weekdag
week: woche semaine semana settimana kw
month: monat mois mes mese maand mensuel mensuelle monthly monatlich mensile mensual maandelijks
year: jahr année año anno jaar fiscal
current: aktuell laufend actuel huidig actual corrente present neu
currency: währung devise moneda valuta munt
advance: vorschuss avance anticipo
claim: schaden sinistre forderung schadennummer
diagnosis: diagnose diagnostic diagnóstico icd
procedure: leistung-med behandlung cpt treatment
account_holder: kontoinhaber titulaire titular intestatario accountholder
statement: kontoauszug auszug relevé-compte extracto estratto
transaction: buchung buchungen transaktion opération movimiento booking umsätze
member: mitglied membre miembro socio
meeting: sitzung besprechung réunion reunión
attendee: teilnehmende anwesend présents participants anwesende present
agenda: tagesordnung ordre-du-jour
session: sitzung-sess vortrag talk
speaker: referent redner intervenant orador
seat: sitz sitzplatz siège asiento
gate: ausgang porte puerta flugsteig
flight_no: flug vol vuelo
passenger: fahrgast passager pasajero reisender traveller traveler
ticket: fahrkarte billet boleto biglietto
security: social sozialversicherung sozialversicherungsnummer ssn sv ni n.i uan nir insee rvnr
identification: ein tin taxpayer steuernummer steuer-id steueridentifikation
exempt: befreit exonéré exemption exemptions exento
classification: einstufung
requester: antragsteller demandeur solicitante applicant
purpose: zweck objet-but reason grund motif
notes: bemerkung bemerkungen remarques observaciones note comments anmerkung hinweis remarks memo opmerking
model: modell modèle modelo
serial: seriennummer série
manufacturer: hersteller fabricant fabricante maker brand marke
student: schüler étudiant étudiante studierende studierender matrikel matrikelnummer alumno estudiante usn enrollment enrolment roll learner studente pupil
program: programme studiengang formation carrera mention branch major curriculum filière corso studienfach
folio: folio
broker: makler courtier intermédiaire vermittler producer corredor
holder: inhaber titulaire-d
signed: unterzeichnet signé fait firmato gezeichnet
pet: pets haustier haustiere animaux mascotas animali
furnished: möbliert meublé amueblado arredato gemeubileerd
deposit: kaution dépôt garantie-dépôt fianza cauzione borg caution
service_charges: nebenkosten charges betriebskosten heizkosten provisions gastos
notice: kündigungsfrist kündigung préavis preaviso disdetta opzegtermijn
premises: mietobjekt wohnung mieträume logement dwelling vivienda immobile gehuurde
overtime: überstunden heures-sup
ytd: ytd year-to-date jahreswerte aufgelaufen cumul kumuliert
payslip: entgeltabrechnung gehaltsabrechnung lohnabrechnung bulletin nómina
port: hafen puerto porto-p haven
container: containers
package: packages kolli colis packstücke bultos colli cartons
quote: quotation angebot devis offerte presupuesto preventivo proposal estimate-q
validity: gültigkeit validité validez
allergies: allergien
meal: mahlzeit repas
fare: fahrpreis tarifa
distance: entfernung strecke kilometer km
volume: volumen m3 cbm
height: höhe hauteur altura
width: breite largeur anchura
length: länge longueur longitud
temperature: temperatur température
voltage: spannung tension
color: farbe couleur colour kleur colore
material: werkstoff matière
approved: genehmigt approuvé freigegeben aprobado freigabe goedgekeurd approuvé aprobado approvato
prepared: erstellt-von préparé prepared-by
absent: abwesend entschuldigt excused apologies absents
present: anwesend-p
chair: vorsitz vorsitzender président-s chairman chairperson leitung
decision: beschluss décision decisión resolution
action: aufgabe maßnahme todo
winner: sieger vainqueur
score: ergebnis-s stand
referee: schiedsrichter arbitre
married: verheiratet marié mariée casado casada sposato sposata gehuwd
single: ledig célibataire soltero soltera celibe nubile ongehuwd unmarried
divorced: geschieden divorcé divorcée divorciado divorziato gescheiden
widowed: verwitwet veuf veuve viudo vedovo weduwe
quarterly: vierteljährlich trimestriel trimestrielle trimestral trimestrale quarter quartal
yearly: jährlich annuel annuelle anual annuale annual annually jaarlijks
weekly: wöchentlich hebdomadaire semanal settimanale wekelijks
employed: berufstätig angestellt salarié employée occupato
retired: rentner pensioniert retraité jubilado pensionato
income: einkommen revenu ingresos reddito inkomen
citizen: staatsbürger citoyen ciudadano cittadino
warranty: garantie-w gewährleistung
speed: geschwindigkeit vitesse
power: leistung-p puissance potencia
dimension: abmessungen maße dimensions size größe taille
"""

GENERIC = {
    "number": 0.4, "name": 0.4, "date": 0.4, "amount": 0.4, "total": 0.6, "code": 0.4, "value": 0.4, "registration": 0.5, "reference": 0.6,
    "type": 0.5, "title": 0.6, "description": 0.6, "status": 0.6, "unit": 0.5, "company": 0.6, "position": 0.6, "identification": 0.6,
    "time": 0.5, "product": 0.7, "period": 0.7, "bank": 0.6,
}  # fmt: skip
"""Words that many labels share say little; all others weigh 1."""

_COMMON = frozenset({"number", "name", "date", "amount", "value", "code", "reference", "total", "type", "start", "end"})
STOP = frozenset(
    """the of a an is that this as in on for and or by with be it if which not where was will were are at has have any all per its their
    der die das und des dem den im zu mit für le la les de et il d l les des aux el los las y e il lo gli di del della en het een op
    null none printed stated example iso 4217 8601 yyyy mm dd us dollars without spaces document otherwise field both digits one line
    given appears shown found extracted extract value-of should must e.g eg i.e ie""".split()
)


@functools.cache
def _words() -> tuple[dict[str, frozenset[str]], tuple[tuple[str, str], ...]]:
    table: dict[str, set[str]] = {}
    for row in _THESAURUS.strip().splitlines():
        concept, _, words = row.partition(": ")
        for word in [concept, *words.split()]:
            table.setdefault(word, set()).add(concept)
    parts = tuple((w, c) for w, cs in table.items() if len(w) >= 5 and w.isalpha() for c in cs)
    for concepts in table.values():
        if concepts & _ALSO_NUMBER:
            concepts.add("number")  # "Employee code" answers employee_number
    return {w: frozenset(c) for w, c in table.items()}, parts


_ALSO_NUMBER = frozenset({"code", "reference", "identification"})


@functools.cache
def concept_names() -> frozenset[str]:
    return frozenset(c for cs in _words()[0].values() for c in cs)


def words_of(concept: str) -> list[str]:
    """The words that mean a concept."""
    return [w for w, concepts in _words()[0].items() if concept in concepts]


@functools.lru_cache(100_000)
def word_concepts(word: str) -> frozenset[str]:
    """Concepts of one word; a compound ("Rechnungsnummer") has those of its parts; an unknown word is its own stem."""
    word = word.lower().strip(".:,;()[]{}*/-'\"!?<>")
    if not word or word in STOP:
        return frozenset()
    table, parts = _words()
    if word in table:
        return table[word]
    if (bare := _without_accents(word)) in table:
        return table[bare]
    for ending in ("s", "es", "en", "n", "e"):
        if word.endswith(ending) and word[: -len(ending)] in table and len(word) - len(ending) >= 4:
            return table[word[: -len(ending)]]
    found: set[str] = set()
    for piece in re.split(r"[-./&']", word):
        if piece in table and piece not in STOP:
            found |= table[piece]
    if len(word) >= 7:
        rest = word
        for part, concept in sorted(parts, key=lambda p: -len(p[0])):
            if part in rest:
                found.add(concept)
                if len(part) >= 6:
                    rest = rest.replace(part, " ")
    if not found:
        found = set(_kin(word)) or ({stem(word)} if len(word) > 1 else set())
    return frozenset(found)


def _kin(word: str) -> frozenset[str]:
    """Concepts of thesaurus words with the same beginning ("arrive", "arrival"), and of the one that a short form begins ("conf.")."""
    if len(word) < 4 or not word.isalpha():
        return frozenset()
    table = _words()[0]
    kin = {cs for w, cs in table.items() if len(w) >= 5 and w[:5] == word[:5] and abs(len(w) - len(word)) <= 3 and _shared(w, word) >= min(len(w), len(word)) - 1}
    if not kin and len(word) <= 5:
        kin = {cs for w, cs in table.items() if w.startswith(word)}
    return next(iter(kin)) if len(kin) == 1 else frozenset()


def _without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def _shared(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def stem(word: str) -> str:
    """The word without accents and common endings, cut to eight letters; enough to join singular and plural."""
    plain = _without_accents(word.lower())
    for ending in ("ations", "ation", "ings", "ing", "ies", "ungen", "ung", "ed", "es", "s", "y"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 4:
            plain = plain[: -len(ending)]
            break
    return plain[:8]


@functools.lru_cache(100_000)
def bag(text: str) -> frozenset[str]:
    """All concepts of a text; numbers and stop words are left out."""
    words = re.split(r"[\s_:|]+|(?<=\w)[./](?=\w)|(?<=\w)\(|\)(?=\w)", text)
    return frozenset(c for w in words if not re.fullmatch(r"[\d.,/%$€£-]+", w) for c in word_concepts(w))


@functools.lru_cache(50_000)
def stems(text: str) -> frozenset[str]:
    """Stems of the words that are neither stop words nor generic; what two texts share literally."""
    words = (w.strip(".:,;()[]*/-'\"") for w in re.split(r"[\s_:|/]+", text.lower()))
    return frozenset(stem(w) for w in words if len(w) > 1 and w not in STOP and not word_concepts(w) <= _COMMON and not w.isdigit())


def weight(concepts: frozenset[str]) -> float:
    return sum(GENERIC.get(c, 1.0) for c in concepts)


@functools.lru_cache(50_000)
def only_label_words(text: str) -> bool:
    """Whether every word that says something is one of the thesaurus, as in "Invoice Date"."""
    concepts = bag(text)
    return bool(concepts) and concepts <= concept_names()
