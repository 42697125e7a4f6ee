import CoreML
import Foundation

/// Runs the model in Core ML.
final class Engine {
    private let model: MLModel

    init() throws {
        guard let url = Bundle.main.url(forResource: "Network", withExtension: "mlmodelc") else {
            throw EngineError.noModel("Network.mlpackage")
        }
        model = try MLModel(contentsOf: url)
    }

    /// The outputs of inputs, in the order of `Facts`.
    func run(_ inputs: [[Float]]) throws -> [[Float]] {
        var features: [String: MLFeatureValue] = [:]
        for (port, values) in zip(Facts.inputs, inputs) {
            guard let described = model.modelDescription.inputDescriptionsByName[port.name],
                let constraint = described.multiArrayConstraint
            else { continue } // nothing depends on it
            let array = try MLMultiArray(shape: constraint.shape, dataType: constraint.dataType)
            if constraint.dataType == .int32 {
                array.withUnsafeMutableBufferPointer(ofType: Int32.self) { to, _ in
                    for (index, value) in values.enumerated() { to[index] = Int32(nearest: value) }
                }
            } else {
                array.withUnsafeMutableBufferPointer(ofType: Float.self) { to, _ in
                    for (index, value) in values.enumerated() { to[index] = value }
                }
            }
            features[port.name] = MLFeatureValue(multiArray: array)
        }
        let found = try model.prediction(from: MLDictionaryFeatureProvider(dictionary: features))
        return try Facts.outputs.map { port in
            guard let array = found.featureValue(for: port.name)?.multiArrayValue else {
                throw EngineError.noOutput(port.name)
            }
            return (0..<array.count).map { array[$0].floatValue }
        }
    }
}
