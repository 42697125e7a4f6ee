import Foundation
import TensorFlowLite

/// Runs the model in LiteRT.
final class Engine {
    private let interpreter: Interpreter

    init() throws {
        guard let path = Bundle.main.path(forResource: "Network", ofType: "tflite") else {
            throw EngineError.noModel("Network.tflite")
        }
        var options = Interpreter.Options()
        options.threadCount = 2
        interpreter = try Interpreter(modelPath: path, options: options)
        for (index, port) in Facts.inputs.enumerated() {
            try interpreter.resizeInput(at: Facts.inputPlaces[index], to: Tensor.Shape(port.shape))
        }
        try interpreter.allocateTensors()
    }

    /// The outputs of inputs, in the order of `Facts`.
    func run(_ inputs: [[Float]]) throws -> [[Float]] {
        for (index, values) in inputs.enumerated() {
            let place = Facts.inputPlaces[index]
            let tensor = try interpreter.input(at: place)
            try interpreter.copy(Engine.bytes(values, as: tensor), toInputAt: place)
        }
        try interpreter.invoke()
        return try Facts.outputPlaces.map { place in try Engine.numbers(interpreter.output(at: place)) }
    }

    /// Numbers in a tensor's type.
    private static func bytes(_ values: [Float], as tensor: Tensor) -> Data {
        let how = tensor.quantizationParameters
        func codes<Code: FixedWidthInteger>(_: Code.Type) -> Data {
            values.map { value -> Code in
                guard let how, how.scale != 0 else { return Code(nearest: value) }
                return Code(nearest: (value / how.scale).rounded(.toNearestOrEven) + Float(how.zeroPoint))
            }.withUnsafeBytes { Data($0) }
        }
        switch tensor.dataType {
        case .float32: return values.withUnsafeBytes { Data($0) }
        case .int32: return codes(Int32.self)
        case .int64: return codes(Int64.self)
        default: return codes(UInt8.self)
        }
    }

    /// A tensor's elements as numbers.
    private static func numbers(_ tensor: Tensor) -> [Float] {
        let scale = tensor.quantizationParameters?.scale ?? 0
        let zero = tensor.quantizationParameters?.zeroPoint ?? 0
        let step = scale == 0 ? 1 : scale
        return tensor.data.withUnsafeBytes { bytes -> [Float] in
            switch tensor.dataType {
            case .float32: return Array(bytes.bindMemory(to: Float.self))
            case .int32: return bytes.bindMemory(to: Int32.self).map { Float($0) }
            case .int64: return bytes.bindMemory(to: Int64.self).map { Float($0) }
            default: return bytes.bindMemory(to: UInt8.self).map { step * Float(Int($0) - zero) }
            }
        }
    }
}
