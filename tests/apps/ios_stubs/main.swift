// Runs a project's classifier: on arrays (arrays FOLDER), or a picture (picture WIDTH HEIGHT FILE FOLDER).
import CoreGraphics
import Foundation

func numbers(_ path: String) throws -> [Float] {
    try Data(contentsOf: URL(fileURLWithPath: path)).withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
}
func write(_ values: [Float], _ path: String) throws {
    try values.withUnsafeBytes { Data($0) }.write(to: URL(fileURLWithPath: path))
}

let words = CommandLine.arguments
let folder = words[words.count - 1]
let classifier = try Classifier()
let found: [[Float]]
if words[1] == "picture" {
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: words[4])))
    let picture = CGImage(width: Int(words[2])!, height: Int(words[3])!, rgba: bytes)
    found = try classifier.run(picture)
    var average = DecayingAverage()
    _ = average.adding(found[0])
    try write(average.adding(found[0].map { $0 / 2 }), folder + "/average.bin")
    for best in Classifier.best(found[0], threshold: -.infinity) { print(best.id, best.score, best.title, separator: "\t") }
} else {
    found = try classifier.run(Facts.inputs.indices.map { try numbers(folder + "/input_\($0).bin") })
    print(Classifier.words(found))
}
for (place, values) in found.enumerated() { try write(values, folder + "/found_\(place).bin") }
