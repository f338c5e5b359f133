"""Word lists that names, messages and texts are composed of."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _split(
    """
    Zoë José Małgorzata Søren Łukasz Amélie Jürgen Núria Håkon Čeněk Şebnem Öykü Ines Björk Aoife Siobhán Bartosz
    Chloë Renée Günther Tomás Íñigo Begoña Conceição João Mónica Lourdes Xiomara Ngozi Chidi Oluwaseun Kwame Amara
    Thandiwe Priya Arjun Ananya Ravi Mei Haruto Sakura Yuki Jisoo Minh Linh Thảo Putu Dewi Aisyah Omar Layla Yusuf
    Farah Noam Tamar Dmitri Svetlana Oksana Bohdan Ilse Pieter Maarten Femke Élodie Gaël Loïc Margaux Fiona Callum
    Rhys Bronwyn Grace Martha Owen Hannah Felix Clara Anders Astrid Freya Elina Aino Matti Giulia Niccolò Chiara
    Raffaele Dragana Željko Ivana Bálint Zsófia András Ioana Ștefan Eleni Nikos Vytautas Rūta Jānis Kristiina
    """
)

LAST_NAMES = _split(
    """
    Müller Okafor Nguyễn Fernández Kowalski Novák Lindqvist O'Brien Papadopoulos Tanaka Björnsson Haddad Rossi Silva
    Jansen Dubois Petrović Szabó Ionescu Kaya Ivanenko Mbeki Sharma Wójcik Castañeda Łuczak Sørensen Lefèvre Weiß
    Ahlgren Ozols Virtanen Costa Moreau MacLeod Evans Whitfield Carter Bianchi Gruber
    """
)

CITIES = _split(
    """
    Lisbon Kraków Nairobi Osaka Göteborg Lima Tbilisi Bergen Quito Lyon Porto Hanoi Zürich Malmö Accra Montréal Cork
    Leeds Aarhus Gdańsk Seville Turin Graz Izmir Jaipur Busan Perth Dakar Tallinn Riga Bilbao Utrecht Bogotá Cusco
    Naples Salzburg Toulouse Bristol Oulu Cluj Split Patras Haifa Amman Pune Kyoto Dunedin Boise Tucson Halifax
    """
)

PLACES = (
    "the station", "the café on Mill Street", "gate 14", "the east entrance", "platform 3", "the old library",
    "the bakery", "room 2.07", "Pier 9", "the car park", "the museum shop", "Hotel Élysée", "the bus stop",
    "our usual table", "the garden centre", "the front desk", "building C", "the tennis court", "Café Müller",
    "the dentist", "the school gate", "the north tower", "the boathouse", "Praça da Figueira", "the ice rink",
)  # fmt: skip

THINGS = (
    "the spare key", "your umbrella", "two tickets", "the blue folder", "a birthday cake", "the charger",
    "my passport", "some oat milk", "the drill", "the guitar", "a bag of limes", "the contract", "your scarf",
    "the projector", "three pizzas", "the tent", "the jump leads", "my glasses", "the cat's food", "the ladder",
    "a dozen eggs", "the library books", "the red suitcase", "Grandma's recipe", "the parcel", "clean towels",
)  # fmt: skip

WHEN = (
    "tomorrow", "tonight", "on Friday", "after lunch", "before noon", "next week", "at the weekend", "this evening",
    "on Tuesday morning", "in half an hour", "later today", "first thing tomorrow", "after the match", "on the 3rd",
)  # fmt: skip

STATEMENTS = (
    "I'm running {small} minutes late", "dinner is at {time}", "can you bring {thing} {when}?",
    "meet me at {place} at {time}", "the code for the door is {code}", "I left {thing} at {place}",
    "the train leaves at {time} from {place}", "please call {name} {when}", "we need {small} more chairs {when}",
    "{name} can't make it {when}", "I'll pick up {thing} {when}", "the meeting moved to {time}",
    "your order {code} is ready at {place}", "don't forget {thing}", "I paid {small} euros for {thing}",
    "are you still coming to {place} {when}?", "we're already at {place}", "let's take the {small} o'clock bus",
    "the new password is {code}", "{name} says hello", "the flight {code} lands at {time}",
    "could you feed the dog {when}?", "I found {thing} behind the sofa", "parking at {place} closes at {time}",
    "my new address is {number} {street}", "the doctor moved you to {time}", "thanks for {thing}",
    "is {thing} still for sale?", "we won {small} to {small2}!", "the kids are with {name} until {time}",
    "I saw a {adjective} {noun}", "bring the {adjective} {noun}", "the {noun} is {adjective} again",
    "{name} lost the {noun}", "no {noun} without a {noun2}", "where did you put the {noun}?",
    "sold the {noun} for {number}",
    "look under the {noun}", "{name} wants a {noun}", "is {name} in {city}?", "back from {city} {when}",
    "we land in {city} {when}", "{city} is lovely", "{name} and {name2} said yes", "flat {number} on {street}",
    "ring bell {number}", "take bus {number}", "happy birthday, {name}!", "good luck {when}!", "feed the {noun} {when}",
    "it's a {noun}, not a {noun2}", "got the {noun}, need the {noun2}", "call me about the {noun}", "{noun} at {time}?",
    "room {number}, {time}", "your {noun} needs a {noun2}", "{number} people came", "that {noun} was {adjective}!",
)  # fmt: skip

GREETINGS = ("Hi {name},", "Hello {name}!", "Hey,", "Good morning,", "{name},", "Hi there,", "Dear {name},", "Hey!")

SIGN_OFFS = ("See you!", "Thanks!", "Love, {name}", "Talk soon.", "Cheers", "Take care, {name}", "OK?", "No rush.")

STREETS = ("Elm Road", "Rue Bélanger", "Harbour Lane", "Lindenstraße", "Calle Peñón", "Station Road", "Fjordgata")

ADJECTIVES = _split(
    """
    quiet crooked amber frozen hollow restless velvet rusty brilliant humble distant stubborn golden wooden sleepy
    electric tangled bitter gentle unlikely transparent northern seventh careful noisy half-empty well-known
    """
)

NOUNS = _split(
    """
    lantern harbour orchard violin glacier kettle marmot compass bridge thunderstorm postcard sparrow engine
    cathedral notebook tortoise lighthouse pepper satellite accordion meadow staircase turbine walnut archive
    caravan hedgehog telescope river umbrella
    """
)

VERBS = (
    "waits for", "outlives", "remembers", "paints", "follows", "borrows", "repairs", "hides behind", "listens to",
    "carries", "replaces", "admires", "circles", "awakens", "photographs", "ignores", "protects", "measures",
)  # fmt: skip

ADVERBS = (
    "at dawn", "without a sound", "in the rain", "every second winter", "for no reason", "under the old moon",
    "until Monday", "near the frozen lake", "once again", "in broad daylight", "after the concert", "by mistake",
)  # fmt: skip

FOREIGN = (
    "La {a} est déjà fermée", "Der {a} fährt um {time} Uhr ab", "¿Dónde está la {a} de {name}?",
    "Vi ses på fredag, {name}", "O {a} não chegou até às {time}", "Il {a} è di {name}", "Dziękuję za {a}, {name}",
    "Das Treffen mit {name} ist in {city}", "Nous partons de {city} à {time}", "El vuelo {code} sale de {city}",
)  # fmt: skip

FOREIGN_NOUNS = (
    "bibliothèque", "Zug", "estación", "autobús", "pacco", "książkę", "fenêtre", "Schlüssel", "reunião", "cocina",
)  # fmt: skip

PROSE = (
    "the {adjective} {noun} {verb} a {adjective2} {noun2}", "every {noun} {verb} the {noun2} {adverb}",
    "{name} lives in {city} with {small} cats", "no {noun} is as {adjective} as a {noun2}",
    "{adjective} {noun}, {adjective2} {noun2}", "why the {noun} {verb} the {adjective} {noun2}?",
    "chapter {small}: the {noun} of {city}", "invoice {code} was paid on time",
    "{name} and {name2} {adverb}", "from {city} to {city2} in {small} days", "{code} {noun} {number}",
    "it was a {adjective} evening and the {noun} was gone", "one {noun}, {small} {adjective} stories, no regrets",
    "a {noun} {verb} {name} {adverb}", "we sold {number} tickets in {city}", "ask {name} about the {adjective} {noun}",
)  # fmt: skip

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

DOMAINS = ("example.com", "example.org", "mail.example.net", "post.example.de", "shop.example.co.uk")

SUBJECTS = (
    "the {adjective} {noun}", "{noun} for {name}", "invoice {code}", "{city} {when}", "trip to {city}",
    "your {noun}", "about {thing}", "{noun} and {noun2}", "meeting at {time}", "question about the {noun}",
)  # fmt: skip

ERRANDS = (
    "take the {noun} out", "water the {noun}", "call {name}", "take {small} pills", "feed {name}'s cat",
    "lock the {noun}", "practise the {noun}", "write {small} lines", "check the {noun}", "clean the {noun}",
    "walk to the {noun}", "read {number} pages", "learn {small} words", "stretch for {small} minutes",
    "charge the {noun}", "ring {name} at {place}", "look after the {adjective} {noun}", "post a letter to {name}",
    "drink {small} glasses of water", "open the {noun}", "oil the {noun}", "greet {name}",
)  # fmt: skip

NOTE_WORDS = ("wifi", "passport", "dentist", "bicycle", "recipe", "insurance", "locker", "parking", "garage", "boiler")

NOTES = (
    "the * is at {place}", "* code {code}", "bring the * {when}", "* costs {number} euros", "{name} has the *",
    "ask {name} about the *", "* at {time} {when}", "new * for {name}", "* number {number}", "the * needs {thing}",
)  # fmt: skip
"""Notes around a word, which stands where the star is."""

SHORT_NOTES = (
    "buy oat milk", "wifi code HK-22", "call the plumber", "shoe size 42", "gate 14 at noon", "milk, eggs, tea",
    "return the drill", "bin day is Tuesday", "flat 7, ring twice", "order 5512",
)  # fmt: skip
