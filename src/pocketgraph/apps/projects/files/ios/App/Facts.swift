import Foundation

/// What the app knows of its model.
enum Facts {
    static let title = @swift_title@
    static let givesScores = @gives_scores@
    static let takesPictures = @takes_pictures@

    /// The size of pictures that go in.
    static let width = @width@
    static let height = @height@
    static let channels = @channels@

    /// How values of pictures, from 0 to 255, are fed: (value - mean) / std, by channel.
    static let mean: [Float] = [@mean@]
    static let std: [Float] = [@std@]

    static let inputs: [Port] = [
@inputs@    ]
    static let outputs: [Port] = [
@outputs@    ]
@places@
    /// The difference that the test allows, as a share of an output's largest element: the largest, or the mean.
    static let tolerance: Float = @tolerance@
    static let byMean = @by_mean@

    /// The name of each class, one a line of labels.txt; empty where there are none.
    static let labels: [String] = {
        guard let url = Bundle.main.url(forResource: "labels", withExtension: "txt"),
            let text = try? String(contentsOf: url, encoding: .utf8)
        else { return [] }
        var lines = text.components(separatedBy: "\n")
        if lines.last == "" { lines.removeLast() }
        return lines
    }()
}

/// An input or output of the model.
struct Port {
    /// What the model calls it.
    let name: String
    let shape: [Int]

    var count: Int { shape.reduce(1, *) }
}

/// A class of a classifier, and its score.
struct Recognition: Identifiable {
    let id: Int
    let title: String
    let score: Float
}
