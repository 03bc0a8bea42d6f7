"""Names and things for `limit`. Things are all different words, so that no two of them can be meant by one query."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words("""
    Ada Alma Amir Anselm Aoife Arlo Astrid Aurel Bashir Beatrix Benno Birgit Bruno Calla Casimir Celia Cosmo Dalia
    Damaris Dario Delphine Desmond Dimitri Edda Elio Elspeth Emeka Enzo Esme Ezra Fabian Farida Fergus Fiona Florin
    Freya Gaspard Gemma Gideon Giulia Greta Gustav Hadley Hana Hector Hilda Hugo Ida Idris Imani Ingrid Iona Isolde
    Ivo Jarek Jasmina Jonas Joachim Juno Kamal Katya Keiko Kenji Lars Leandro Leila Linnea Livia Lorcan Lucian Ludmila
    Magnus Malika Marcel Marit Matilda Mattis Milan Mireille Nadia Naoko Nestor Nikolai Nora Octavia Odette Olaf Orla
    Oswald Padma Pascal Petra Phoebe Quentin Rafael Ramona Ravi Rosalind Rufus
""")

STEMS = _words("""
    Ash Bar Black Bram Broad Burn Cal Car Clay Cran Dal Den Dun Ell Fair Farn Glen Gran Had Hal Har Hol Kel Kirk Lang
    Lin Mal Mar Mil Nor Oak Pem Rad Ran Red Roth Sel Sil Stan Thorn Wal War West Whit Win
""")

ENDINGS = _words("""
    bourne bury by combe croft dale den field ford gate ham hurst ley low mere mont more shaw ton wick
""")

THINGS = _words("""
    aardvarks alpacas antelopes armadillos baboons badgers bats beavers bison bobcats buffaloes camels capybaras
    caribou cheetahs chimpanzees chinchillas chipmunks coyotes dingoes dolphins donkeys dormice elephants elks ferrets
    foxes gazelles gerbils gibbons giraffes gnus gophers gorillas hamsters hares hedgehogs hippos hyenas ibexes
    impalas jackals jaguars jerboas kangaroos koalas lemmings lemurs leopards lions llamas lynxes manatees marmots
    meerkats mongooses moose narwhals ocelots okapis opossums orangutans otters pandas panthers platypuses ponies
    porcupines porpoises pumas quokkas rabbits raccoons reindeer rhinos seals shrews skunks sloths squirrels tapirs
    tigers voles walruses warthogs weasels whales wolverines wolves wombats yaks zebras

    albatrosses blackbirds bluebirds budgies buzzards canaries cockatoos condors cormorants cranes crows cuckoos doves
    ducks eagles egrets emus falcons finches flamingos geese grouse gulls hawks herons hornbills hummingbirds jays
    kestrels kingfishers kites kiwis larks lyrebirds macaws magpies mynahs nightingales nuthatches orioles ospreys
    ostriches owls parrots partridges peacocks pelicans penguins pheasants pigeons plovers puffins quails ravens
    robins rooks sandpipers sparrows starlings storks swallows swans swifts terns thrushes toucans turkeys vultures
    wagtails warblers woodpeckers wrens

    anchovies barnacles barracudas bass carp catfish clams cod corals crabs crayfish cuttlefish eels flounders
    goldfish guppies haddock halibut herrings jellyfish krill lampreys limpets lobsters mackerel mantas marlins
    mussels nautiluses octopuses oysters perch pike piranhas plaice prawns salmon sardines scallops seahorses sharks
    shrimps snails sponges squids starfish stingrays sturgeons swordfish tilapias trout tuna urchins

    adders alligators anacondas chameleons cobras crocodiles frogs geckos iguanas lizards mambas newts pythons
    rattlesnakes salamanders skinks tadpoles terrapins toads tortoises turtles vipers ants aphids bees beetles
    bumblebees butterflies caterpillars centipedes cicadas cockroaches crickets dragonflies earwigs fireflies fleas
    gnats grasshoppers hornets ladybirds locusts mantises mayflies midges millipedes mosquitoes moths scorpions
    silverfish spiders tarantulas termites ticks wasps weevils

    acacias alders aspens baobabs bamboo beeches birches cedars chestnuts cypresses ebony elms eucalyptuses firs
    ginkgoes hawthorns hemlocks hickories hollies junipers larches laurels lindens magnolias mahogany mangroves maples
    mimosas myrtles oaks palms pines poplars redwoods rowans sequoias spruces sycamores tamarisks teak willows yews
    azaleas begonias bluebells buttercups cacti camellias carnations chrysanthemums clematis clover cornflowers
    crocuses daffodils dahlias daisies dandelions edelweiss ferns foxgloves freesias fuchsias gardenias gentians
    geraniums gladioli heather hibiscus hollyhocks honeysuckle hyacinths hydrangeas irises ivy jasmine lavender
    lichens lilacs lilies lotuses lupins marigolds mistletoe moss narcissi nasturtiums nettles oleanders orchids
    pansies peonies petunias poppies primroses ragwort reeds rhododendrons roses snapdragons snowdrops sunflowers
    thistles tulips verbena violets wisteria yarrow zinnias

    apples apricots avocados bananas blackberries blueberries cantaloupes cherries clementines coconuts cranberries
    currants dates durians elderberries figs gooseberries grapefruits grapes guavas kumquats lemons limes lychees
    mangoes melons mulberries nectarines olives oranges papayas peaches pears persimmons pineapples plums pomegranates
    pomelos prunes quinces raisins raspberries rhubarb strawberries tangerines artichokes asparagus aubergines beans
    beetroots broccoli cabbages capers carrots cauliflowers celery chard chickpeas chicory chillies chives courgettes
    cress cucumbers endives fennel garlic gherkins horseradish kale kohlrabi leeks lentils lettuces mushrooms okra
    onions parsnips peas potatoes pumpkins radishes shallots sorrel soybeans spinach sprouts squashes swedes
    tomatoes truffles turnips watercress yams almonds cashews hazelnuts macadamias peanuts pecans pistachios walnuts
    buckwheat maize millet oats quinoa rice rye sorghum spelt wheat

    aniseed basil caraway cardamom cayenne chervil cinnamon cloves coriander cumin dill ginger lemongrass liquorice
    mace marjoram mint mustard nutmeg oregano paprika parsley peppercorns rosemary saffron sage sesame sumac tamarind
    tarragon thyme turmeric vanilla wasabi

    bacon bagels baguettes baklava biscuits bratwurst brioche brownies burgers burritos butter buttermilk cakes
    calzone candyfloss caramel casseroles caviar ceviche cheesecake chocolate chowder chutney ciabatta couscous
    crackers crepes croissants croutons crumpets curries custard doughnuts dumplings eclairs empanadas enchiladas
    falafel flapjacks focaccia fondue fritters fudge gazpacho gelato gingerbread gnocchi goulash granola gravy gumbo
    halloumi halva ham honey houmous jambalaya jam kebabs ketchup kimchi lasagne macaroni macaroons marmalade
    marshmallows marzipan mayonnaise meatballs meringues minestrone moussaka mozzarella muesli muffins naan nachos
    noodles nougat omelettes paella pancakes parmesan pasties pastrami pavlova pesto pickles pies pizza polenta
    popcorn porridge pralines pretzels profiteroles puddings quiche ramen ratatouille ravioli risotto salami samosas
    sandwiches sauerkraut sausages scones sherbet shortbread sorbet souffles soups spaghetti stollen strudel sushi
    syrup tacos tapas tempura toffee tofu tortillas trifle vinegar waffles yoghurt

    absinthe ale bourbon brandy champagne cider cocoa coffee cognac espresso gin kombucha lager lemonade mead
    milkshakes port rum sake sangria sherry smoothies tea tequila vermouth vodka whisky wine

    accordions bagpipes balalaikas banjos bassoons bongos bugles castanets cellos clarinets cornets cymbals
    didgeridoos drums dulcimers fiddles flutes glockenspiels gongs guitars harmonicas harps harpsichords kazoos lutes
    lyres mandolins maracas marimbas oboes ocarinas organs pianos piccolos recorders saxophones sitars synthesizers
    tambourines theremins timpani triangles trombones trumpets tubas ukuleles violas vuvuzelas xylophones zithers

    ballads blues bluegrass calypso cantatas carols chorales disco dubstep fado flamenco funk gospel grunge hymns jazz
    lullabies madrigals mambo marches mazurkas minuets nocturnes operas operettas oratorios overtures polkas punk
    ragtime reggae requiems rumba salsa sambas serenades shanties ska sonatas soul symphonies tango techno toccatas
    waltzes yodelling

    abseiling aerobics aikido archery athletics badminton ballet baseball basketball billiards bobsleigh bouldering
    bowling boxing canoeing capoeira croquet curling cycling darts dodgeball falconry fencing fishing football frisbee
    gliding golf gymnastics handball hiking hockey hurdling jogging judo juggling karate kayaking kickboxing lacrosse
    luge netball orienteering paddleboarding parachuting parkour pilates polo rafting rowing rugby sailing
    skateboarding skating skiing snooker snorkelling snowboarding softball sumo surfing swimming taekwondo tennis
    tobogganing trampolining triathlons unicycling volleyball weightlifting windsurfing wrestling yachting yoga
    backgammon bingo bridge canasta charades chess conkers crosswords dominoes draughts hopscotch jigsaws mahjong
    poker rummy scrabble solitaire sudoku yo-yos

    astrology baking basketry batik beekeeping birdwatching blacksmithing bookbinding brewing calligraphy carpentry
    cartography ceramics crochet decoupage dressmaking embroidery engraving etching foraging gardening genealogy
    glassblowing heraldry ikebana journaling knitting lacemaking lithography locksmithing macrame magic marquetry
    millinery mosaics needlepoint numismatics origami painting papermaking patchwork philately photography pottery
    puppetry quilting saddlery scrapbooking sculpture sewing spelunking stargazing taxidermy topiary upholstery
    ventriloquism weaving whittling woodturning

    algebra anatomy anthropology archaeology astronomy bacteriology biochemistry botany calculus chemistry cosmology
    cryptography demography ecology economics entomology epistemology etymology genetics geology geometry geophysics
    hydrology immunology jurisprudence lexicography linguistics logic mechanics metaphysics meteorology mycology
    neurology oceanography optics ornithology palaeontology philosophy phonetics physics psychology rhetoric
    seismology sociology statistics theology thermodynamics topology trigonometry virology volcanology zoology

    agates amber amethysts aquamarine basalt bronze chalk chromium cobalt copper diamonds emeralds flint garnets gold
    granite graphite jade jasper lapis limestone magnesium malachite marble mercury nickel obsidian onyx opals pearls
    pewter platinum porphyry pumice quartz rubies sandstone sapphires silver slate sulphur tin titanium topaz
    tourmaline tungsten turquoise uranium zinc zircons

    anoraks aprons bandanas berets blazers bonnets boots bracelets braces brooches capes cardigans clogs corsets
    cravats cufflinks dungarees earmuffs earrings galoshes gloves hats hoodies jackets jeans kilts kimonos leggings
    mittens moccasins necklaces nightgowns overalls parkas pendants petticoats pullovers pyjamas raincoats rucksacks
    sandals saris sarongs scarves shawls shorts skirts slippers sneakers socks sombreros stockings suspenders tiaras
    tights tracksuits trousers turbans tuxedos umbrellas veils waistcoats wellingtons wigs

    calico cashmere chiffon corduroy cotton denim felt flannel gauze gingham hemp hessian lace leather linen lycra
    mohair muslin nylon organza polyester satin silk suede taffeta tulle tweed velvet wool

    anvils axes bellows chisels clamps compasses corkscrews crowbars drills files hammers hatchets hoes jacks ladders
    lathes levers magnets magnifiers mallets microscopes nails padlocks penknives periscopes pincers pitchforks planes
    pliers pulleys rakes sandpaper saws scissors screwdrivers scythes sextants shovels sickles spanners spades
    stethoscopes telescopes thermometers tweezers vices wheelbarrows wrenches

    armchairs baskets bathtubs beds benches blankets blenders bookcases bottles bowls brooms buckets candles
    candlesticks carpets chandeliers clocks colanders cradles cupboards curtains cushions decanters desks dishwashers
    doormats drawers duvets fireplaces footstools fridges futons goblets hammocks jugs kettles lampshades lanterns
    mattresses microwaves mirrors mops mugs napkins ovens pillows pitchers plates quilts radiators ropes rugs
    saucepans shelves sideboards sieves sinks sofas spatulas spoons stools tablecloths tankards teapots toasters
    towels trays vases wardrobes whisks woks

    airships ambulances barges bicycles bulldozers buses caravans carriages catamarans chariots dinghies ferries
    forklifts galleons gondolas helicopters hovercraft jeeps junks limousines locomotives lorries minivans monorails
    mopeds motorcycles parachutes rickshaws rockets sampans schooners scooters seaplanes sledges snowmobiles
    speedboats spaceships stagecoaches steamboats submarines tankers taxis tractors trams tricycles trolleybuses
    trucks tugboats vans wagons yachts zeppelins

    abbeys airports amphitheatres aqueducts aquariums arcades bakeries balconies barns basilicas bazaars bungalows
    cafes canals castles catacombs cathedrals cemeteries chapels chateaux cinemas circuses cloisters cottages
    courtyards dams docks dungeons embassies factories farms fortresses fountains garages gazebos greenhouses
    gymnasiums harbours hospitals hostels hotels igloos jetties kiosks laboratories launderettes libraries lighthouses
    marinas mausoleums mazes monasteries monuments mosques museums nurseries observatories orchards pagodas palaces
    parks pavilions piers planetariums playgrounds prisons pyramids quarries ranches ruins saunas schools shrines
    skyscrapers stables stadiums synagogues taverns temples theatres towers tunnels turrets universities viaducts
    villas vineyards warehouses watermills windmills zoos

    archipelagos atolls avalanches beaches blizzards bogs canyons caves cliffs clouds comets craters dawns deltas
    deserts dunes earthquakes eclipses estuaries fjords fog forests frost galaxies geysers glaciers gorges hailstones
    hills hurricanes icebergs islands jungles lagoons lakes lava lightning marshes meadows meteors monsoons moons
    moors mountains nebulae oases oceans peninsulas planets plateaus ponds prairies quicksand rainbows ravines reefs
    rivers savannahs sleet snow springs stalactites storms summits sunsets swamps thunder tides tornadoes tundra
    valleys volcanoes waterfalls whirlpools

    almanacs atlases autobiographies biographies bookmarks cartoons comics cookbooks diaries dictionaries
    encyclopaedias epics essays fables fairytales folklore haikus legends letters limericks magazines manuscripts
    memoirs myths newspapers novellas novels odes parables parodies poems postcards proverbs puns riddles satires
    sonnets tragedies westerns anagrams farces pantomimes documentaries musicals thrillers sitcoms

    accountants acrobats actors admirals architects astronauts barbers barristers butchers butlers chauffeurs
    choreographers clowns cobblers conductors cowboys dentists detectives diplomats electricians explorers farmers
    firefighters gladiators goldsmiths hermits jockeys judges knights librarians lumberjacks magicians mathematicians
    midwives miners monks nurses opticians paramedics pharmacists pilots pirates plumbers poets professors ringmasters
    samurai sculptors shepherds sheriffs stuntmen surgeons tailors vikings waiters wizards

    angels centaurs cyclopes dragons dwarves elves fairies genies ghosts giants gnomes goblins griffins krakens
    leprechauns mermaids minotaurs nymphs ogres phoenixes pixies sphinxes trolls unicorns vampires werewolves yetis
    zombies balloons bonfires carousels confetti fireworks kaleidoscopes metronomes piggybanks seesaws teddies tents
    thimbles tinsel trophies abacuses typewriters telegraphs gramophones sundials hourglasses barometers globes
    cameras televisions radios computers robots calculators batteries lasers
""")
