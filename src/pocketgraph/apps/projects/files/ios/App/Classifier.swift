import CoreGraphics
import Foundation

/// Feeds pictures and arrays to the engine, and gives what comes out in words. One thread at a time may use it.
final class Classifier {
    private let engine: Engine

    init() throws {
        engine = try Engine()
    }

    /// The outputs of inputs, in the model's order.
    func run(_ inputs: [[Float]]) throws -> [[Float]] {
        try engine.run(inputs)
    }

    /// The outputs of a picture, whose middle square is fed.
    func run(_ picture: CGImage) throws -> [[Float]] {
        guard let pixels = Pixels.ofMiddleSquare(picture, width: Facts.width, height: Facts.height) else {
            throw EngineError.noPicture
        }
        return try engine.run([Classifier.fed(pixels)])
    }

    /// Bytes of red, green, blue and nothing as the model takes them.
    static func fed(_ pixels: [UInt8]) -> [Float] {
        var values: [Float] = []
        values.reserveCapacity(Facts.width * Facts.height * Facts.channels)
        for start in stride(from: 0, to: pixels.count, by: 4) {
            let red = Float(pixels[start])
            let green = Float(pixels[start + 1])
            let blue = Float(pixels[start + 2])
            if Facts.channels == 1 {
                let grey = (0.299 * red + 0.587 * green + 0.114 * blue).rounded()
                values.append((grey - Facts.mean[0]) / Facts.std[0])
            } else {
                values.append((red - Facts.mean[0]) / Facts.std[0])
                values.append((green - Facts.mean[1]) / Facts.std[1])
                values.append((blue - Facts.mean[2]) / Facts.std[2])
            }
        }
        return values
    }

    /// Whether scores are from 0 to 1; logits are not, of which a small one means nothing.
    static func areShares(_ scores: [Float]) -> Bool {
        !scores.contains { $0 < 0 || $0 > 1.001 } // rounding makes shares a little larger than 1
    }

    /// A score for each class: one alone is the share of the second of two.
    static func ofClasses(_ scores: [Float]) -> [Float] {
        scores.count == 1 && Facts.labels.count == 2 ? [1 - scores[0], scores[0]] : scores
    }

    /// The classes of the highest scores, best first: those from the threshold on, or the best where none is.
    static func best(_ scores: [Float], count: Int = 5, threshold: Float = 0.1) -> [Recognition] {
        let shown = ofClasses(scores)
        let least = min(threshold, shown.max() ?? threshold)
        let found = shown.enumerated().filter { $0.element >= least }
        return found.sorted { $0.element > $1.element }.prefix(count).map { index, score in
            Recognition(id: index, title: index < Facts.labels.count ? Facts.labels[index] : "class \(index)", score: score)
        }
    }

    /// The first numbers of each output, in a line.
    static func words(_ outputs: [[Float]]) -> String {
        zip(Facts.outputs, outputs).map { port, values in
            let first = values.prefix(8).map { String(format: "%.4g", $0) }.joined(separator: ", ")
            return "\(port.name): \(first)"
        }.joined(separator: "\n")
    }
}

/// Scores over frames: each frame, what is kept becomes three quarters of itself, and a quarter of each score over 0.05 is
/// added. Of the first frame it is the scores themselves. Logits, and frames without a score over 0.05, are averaged whole.
struct DecayingAverage {
    private var kept: [Float] = []
    /// False once a score was no share.
    private(set) var areShares = true

    mutating func adding(_ scores: [Float]) -> [Float] {
        areShares = areShares && Classifier.areShares(scores)
        guard kept.count == scores.count else {
            kept = scores
            return kept
        }
        let isWhole = !areShares || !scores.contains { $0 > 0.05 } // of a thousand classes often none is
        for (index, score) in scores.enumerated() {
            let old = 0.75 * kept[index]
            kept[index] = (old > 0.01 || isWhole ? old : 0) + (score > 0.05 || isWhole ? 0.25 * score : 0)
        }
        return kept
    }
}

/// What can go wrong with the model.
enum EngineError: LocalizedError {
    case noModel(String)
    case noOutput(String)
    case noPicture

    var errorDescription: String? {
        switch self {
        case .noModel(let name): return "\(name) is not in the app"
        case .noOutput(let name): return "the model gives no \(name)"
        case .noPicture: return "the picture cannot be read"
        }
    }
}

/// Pictures as bytes.
enum Pixels {
    /// The middle square of a picture in another size: red, green, blue and nothing for each pixel.
    static func ofMiddleSquare(_ picture: CGImage, width: Int, height: Int) -> [UInt8]? {
        let side = min(picture.width, picture.height)
        let middle = CGRect(x: (picture.width - side) / 2, y: (picture.height - side) / 2, width: side, height: side)
        guard let square = picture.cropping(to: middle) else { return nil }
        var pixels = [UInt8](repeating: 0, count: 4 * width * height)
        let isDrawn = pixels.withUnsafeMutableBytes { bytes -> Bool in
            guard let context = CGContext(
                data: bytes.baseAddress, width: width, height: height, bitsPerComponent: 8, bytesPerRow: 4 * width,
                space: CGColorSpaceCreateDeviceRGB(), bitmapInfo: CGImageAlphaInfo.noneSkipLast.rawValue)
            else { return false }
            context.interpolationQuality = .medium
            context.draw(square, in: CGRect(x: 0, y: 0, width: width, height: height))
            return true
        }
        return isDrawn ? pixels : nil
    }
}

extension FixedWidthInteger {
    /// The nearest number that the type has; 0 for what is no number.
    init(nearest value: Float) {
        let whole = value.rounded(.toNearestOrEven)
        self = value.isNaN ? 0 : Self(exactly: whole) ?? (whole < 0 ? .min : .max)
    }
}
